"""Send traces over OTLP if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. If it is not, the exporter is not imported."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from celery.signals import worker_process_init, worker_process_shutdown, worker_shutdown
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from core import tracing


class OpenTelemetrySpans:
    def __init__(self) -> None:
        from opentelemetry import context, trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._context, self._trace = context, trace
        self._propagator = TraceContextTextMapPropagator()
        resource = Resource({"service.name": "ragsite", "service.instance.id": str(uuid.uuid4())})
        resource = Resource.create().merge(resource).merge(OTELResourceDetector().detect())
        # The provider is not global, because libraries in the worker would then use it too.
        self._traces = TracerProvider(resource=resource)
        self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._traces.get_tracer("ragsite")

    def begin(self, name: str, attributes: Mapping[str, tracing.Attribute]) -> Any:
        return self._tracer.start_span(name, attributes=dict(attributes))

    def enter(self, span: Any) -> Any:
        return self._context.attach(self._trace.set_span_in_context(span))

    def leave(self, token: Any) -> None:
        self._context.detach(token)

    def end(self, span: Any, failure: str) -> None:
        if failure:
            span.set_attribute("error.type", failure)
            span.set_status(self._trace.StatusCode.ERROR)
        span.end()

    def annotate(self, attributes: Mapping[str, tracing.Attribute]) -> None:
        self._trace.get_current_span().set_attributes(dict(attributes))

    def begin_request(self, request: HttpRequest) -> Any:
        """Begin the span of a request and make it current, as a child of the span in `traceparent`."""
        method = request.method or "HTTP"
        return self._begin_child_span(
            request.headers, method, self._trace.SpanKind.SERVER, {"http.request.method": method}
        )

    def end_request(self, span: Any, request: HttpRequest, response: HttpResponseBase) -> None:
        # The address may contain a secret or a question, so the span has the route.
        route = request.resolver_match.route if request.resolver_match else ""
        if route:
            span.update_name(f"{request.method} /{route}")
            span.set_attribute("http.route", f"/{route}")
        span.set_attribute("http.response.status_code", response.status_code)
        self.end(span, str(response.status_code) if response.status_code >= 500 else "")

    def inject_headers(self, headers: dict[str, object]) -> None:
        self._propagator.inject(headers)

    def begin_task(self, task: Any) -> Any:
        return self._begin_child_span(
            vars(task.request), task.name, self._trace.SpanKind.CONSUMER, {"messaging.system": "celery"}
        )

    def _begin_child_span(self, sent: Mapping[str, Any], name: str, kind: Any, attributes: dict[str, str]) -> Any:
        parent = {header: sent[header] for header in ("traceparent", "tracestate") if sent.get(header)}
        span = self._tracer.start_span(name, self._propagator.extract(parent), kind, attributes)
        self.enter(span)
        return span

    def shut_down(self) -> None:
        self._traces.shutdown()


_spans: OpenTelemetrySpans | None = None


def get_spans() -> OpenTelemetrySpans | None:
    return _spans


@worker_process_init.connect
def start_telemetry(**_: Any) -> None:
    """Start the thread that sends traces. Call it in each process, because a fork has no threads."""
    global _spans
    if settings.OTEL_ENDPOINT and _spans is None:
        _spans = OpenTelemetrySpans()
        tracing.set_span_backend(_spans)


@worker_shutdown.connect
@worker_process_shutdown.connect
def _shut_down_spans(**_: Any) -> None:
    if _spans is not None:
        _spans.shut_down()
