"""A small OpenTelemetry collector over real HTTP, which keeps what it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.serving import QuietHandler, serving


@dataclass
class Receiver:
    spans: list[Any] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    url: str = ""

    def path_of(self, span: Any) -> list[str]:
        """The names of the spans from the outermost one to this one, within its trace."""
        by_id = {each.span_id: each for each in self.spans if each.trace_id == span.trace_id}
        names = []
        while span is not None:
            names.append(span.name)
            span = by_id.get(span.parent_span_id)
        return names[::-1]

    def paths(self) -> set[tuple[str, ...]]:
        return {tuple(self.path_of(span)) for span in list(self.spans)}


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    state = Receiver()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            raw = self.read_body()
            state.raw.append(raw)
            assert self.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
                for scope in resource.scope_spans:
                    state.spans += scope.spans
            self.send()

    with serving(Handler) as state.url:
        yield state
