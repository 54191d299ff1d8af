"""Logs of real processes that name the request, and traces that lead from it to each part.

Neither contains questions or uploads.
"""

import io
import json
import logging
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from django.db import IntegrityError, transaction
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragsite.operations.logs import JsonFormatter, TextFormatter
from retrieval.models import Collection, Document
from tests.support.completion_server import completion_server
from tests.support.keys import key_of
from tests.support.people import make_staff, make_superuser
from tests.support.serving import QuietHandler, serving
from tests.support.site import WebServer, real_queue, start_worker, wait_until

# A small OpenTelemetry collector over real HTTP, which keeps what it is sent.


@dataclass
class Receiver:
    spans: list[Any] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    url: str = ""

    def path_of(self, span):
        """Return the names of the spans from the outermost one to this one, within its trace."""
        by_id = {each.span_id: each for each in self.spans if each.trace_id == span.trace_id}
        names = []
        while span is not None:
            names.append(span.name)
            span = by_id.get(span.parent_span_id)
        return names[::-1]

    def paths(self):
        return {tuple(self.path_of(span)) for span in list(self.spans)}


@contextmanager
def otlp_receiver():
    state = Receiver()

    class Handler(QuietHandler):
        def do_POST(self):
            raw = self.read_body()
            state.raw.append(raw)
            assert self.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
                for scope in resource.scope_spans:
                    state.spans += scope.spans
            self.send()

    with serving(Handler) as state.url:
        yield state


ASKED = "quarkelbeere"
UPLOADED = "zimtwolke"
REQUEST_ID = "proxy-4711.abc"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
_ASKED = ("POST /api/v1/ask/", "answer")
EXPECTED_PATHS = {
    ("POST /api/v1/documents/", "retrieval.tasks.ingest_document"),
    _ASKED,
    (*_ASKED, "search", "search.lexical"),
    (*_ASKED, "search", "search.vector"),
    (*_ASKED, "search", "search.fusion"),
    (*_ASKED, "assembly"),
    (*_ASKED, "model"),
    (*_ASKED, "composition"),
}


def lines_of(log):
    """Return the events; a worker prints a banner beside them."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


@pytest.mark.worker
@pytest.mark.django_db(transaction=True)
def test_an_upload_and_a_question(collection, tmp_path):
    user = make_superuser("boss")
    credentials = f"Bearer {key_of(user)}"
    question = f"How much does the {ASKED} pump weigh when it is filled with oil?"
    text = f"The {ASKED} pump of the {UPLOADED} series weighs 3450 grams when it is filled with oil."
    logs = {name: tmp_path / f"{name}.log" for name in ("web", "worker")}
    with completion_server() as model, otlp_receiver() as collector, real_queue():
        # A server that quotes the request in its complaint, as some validators do.
        model.status = 400
        model.raw = json.dumps({"error": {"message": f"input: {question}", "input": text}}).encode()
        environment = {
            "LOG_FORMAT": "json",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        worker = start_worker(logs["worker"], **environment)
        web = WebServer(logs["web"], **environment, OPENAI_BASE_URL=model.url, OPENAI_MODEL="tiny")
        try:
            uploaded = httpx2.post(
                f"{web.url}/api/v1/documents/",
                data={"collection": collection.slug},
                files={"file": ("pump.md", f"# Pump\n\n{text}\n".encode())},
                headers={"Authorization": credentials, "X-Request-ID": REQUEST_ID},
                timeout=120,
            )
            assert (uploaded.status_code, uploaded.headers["X-Request-ID"]) == (202, REQUEST_ID)
            wait_until(lambda: Document.objects.get().status == "ready", 120, "the document")
            answered = httpx2.post(
                f"{web.url}/api/v1/ask/?why={ASKED}",
                json={"question": question},
                headers={"X-Request-ID": "not well-formed", "traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01"},
                timeout=120,
            )
            assert answered.status_code == 200
            asked_as = answered.headers["X-Request-ID"]
            assert uuid.UUID(hex=asked_as)
            wait_until(lambda: collector.paths() >= EXPECTED_PATHS, 120, "the spans")
        finally:
            web.stop()
            worker.stop()
    assert any(ASKED in json.dumps(request) for request in model.requests)
    sent = b"".join(collector.raw).lower()
    assert ASKED.encode() not in sent
    assert UPLOADED.encode() not in sent
    # The caller's trace continues.
    asked = [span for span in collector.spans if span.name == "POST /api/v1/ask/"]
    assert [span.trace_id.hex() for span in asked] == [TRACE_ID]
    for log in logs.values():
        assert ASKED not in log.read_text().lower(), log.name
        assert UPLOADED not in log.read_text().lower(), log.name
    web_lines, worker_lines = lines_of(logs["web"]), lines_of(logs["worker"])
    uploads = [line for line in web_lines if line.get("request_id") == REQUEST_ID]
    access = next(line for line in uploads if line["logger"] == "ragsite.access")
    assert (access["method"], access["path"], access["status"]) == ("POST", "/api/v1/documents/", 202)
    assert (access["user"], access["key"]) == (user.pk, user.api_keys.get().pk)
    assert access["duration_ms"] > 0
    # Log lines of the thread that made the answer belong to the request, too.
    warned = [line for line in web_lines if line.get("request_id") == asked_as and line["logger"] != "ragsite.access"]
    assert any("the documents are quoted instead" in line["message"] for line in warned), web_lines
    done = [line for line in worker_lines if line.get("request_id") == REQUEST_ID]
    assert any("succeeded" in line["message"] and line["task"].endswith("ingest_document") for line in done)


@pytest.mark.django_db
def test_secrets_of_addresses_are_not_in_access_lines(client, settings, caplog):
    settings.LOG_REQUESTS = True
    token = uuid.uuid4()
    with caplog.at_level(logging.INFO, "ragsite.access"):
        client.get(f"/s/{token}/?q=secret")
        client.get("/healthz")
    assert [record.getMessage() for record in caplog.records if record.name == "ragsite.access"] == ["GET /s/***/ 404"]


@pytest.mark.django_db
def test_the_log_of_the_embedded_server_holds_no_values(settings):
    log = settings.EMBEDDED_POSTGRES.log
    begins = log.stat().st_size
    Collection.objects.create(slug=UPLOADED, name="First")
    with pytest.raises(IntegrityError, match=UPLOADED), transaction.atomic():
        Collection.objects.create(slug=UPLOADED, name="Second")
    written = log.read_bytes()[begins:]
    assert b"retrieval_collection_slug" in written
    assert UPLOADED.encode() not in written


@pytest.mark.parametrize("formatter", [TextFormatter("%(message)s"), JsonFormatter()])
def test_what_a_library_quotes_behind_its_first_line_is_cut_off(formatter):
    # Not spelt out in a line that raises: tracebacks show those.
    row = f"a row is refused\nDETAIL: Failing row contains ({UPLOADED})."
    try:
        try:
            raise ValueError(row)
        except ValueError as error:
            raise RuntimeError("not stored") from error
    except RuntimeError as error:
        arguments = ("stopped", error)
        record = logging.LogRecord("a", 30, "", 0, f"%s\n{UPLOADED}: %s", arguments, (RuntimeError, error, None))
    record.request = b"<GET /?question=zimtwolke>"
    text = formatter.format(record)
    assert UPLOADED not in text
    for part in ("stopped …", "ValueError: a row is refused …", "RuntimeError: not stored", __file__):
        assert part in text


@pytest.mark.django_db
def test_a_403_is_one_line_and_a_500_has_its_traceback(client, monkeypatch):
    handler = next(each for each in logging.getLogger().handlers if isinstance(each.formatter, TextFormatter))
    assert isinstance(handler, logging.StreamHandler)
    monkeypatch.setattr(handler, "stream", stream := io.StringIO())
    client.force_login(make_staff("staff"))
    assert client.get("/admin/evaluation/dashboard/").status_code == 403
    (line,) = stream.getvalue().splitlines()
    assert "Forbidden (Permission denied): /admin/evaluation/dashboard/" in line
    try:
        raise ValueError("broken")
    except ValueError as error:
        logging.getLogger("django.request").error("Error", exc_info=error, extra={"status_code": 500})
    assert "ValueError: broken" in stream.getvalue()
