"""Requests that never reach a view, and bodies as they come over the wire."""

import asyncio
import json

import pytest

pytestmark = pytest.mark.django_db


async def exchange(method, path, headers, pieces=(b"",)):
    """Status and body of the answer to a request whose body comes in ``pieces``."""
    sent = []
    bodies = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    bodies[-1]["more_body"] = False
    bodies.reverse()

    async def receive():
        if bodies:
            return bodies.pop()
        await asyncio.sleep(60)  # the client stays on the line
        raise AssertionError("nobody should wait that long")

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"q=1",
        "headers": [
            (b"host", b"localhost"),
            *((name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()),
        ],
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }
    # Imported here: each process of a run collects this module, and the application compresses all static files.
    from ragsite.asgi import application

    await application(scope, receive, send)
    return int(sent[0]["status"]), b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/plain", 200),
        ("text/plain; charset=utf-8", 200),
        ('text/plain; charset="latin-1"', 200),
        ("text/plain; charset=no-such-thing", 200),
        ("text/plain; charset=hex", 400),
        ("text/plain; Charset = rot13", 400),
        *((f"text/plain; charset={label}", 400) for label in ("idna", "punycode", "utf-7", "unicode_escape", "cp037")),
        *((f"text/plain; charset*={label}''abc", 400) for label in ("idna", "undefined", "punycode", "nonsense")),
        ("text/plain; x*0* =idna''abc", 400),
    ],
)
async def test_an_encoding_that_is_none_of_the_web_is_refused(content_type, expected):
    status, _body = await exchange("GET", "/healthz", {"Content-Type": content_type})
    assert status == expected


@pytest.mark.parametrize("accepted", ["application/json; x*=idna''abc", "text/html; q*=undefined''1"])
async def test_so_is_one_in_a_parameter_of_accept(accepted):
    status, _body = await exchange("GET", "/api/v1/collections/", {"Accept": accepted})
    assert status == 400


CHUNKED = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}


async def test_a_json_body_in_chunks_is_read():
    status, body = await exchange("POST", "/api/v1/search/", CHUNKED, (b'{"query"', b": 7}"))
    assert (status, json.loads(body)) == (400, {"query": ["This must be a string."]})


async def test_a_body_in_chunks_is_read_whatever_length_is_declared():
    headers = {**CHUNKED, "Content-Length": "3"}
    status, body = await exchange("POST", "/api/v1/search/", headers, (b'{"query"', b": 7}"))
    assert (status, json.loads(body)) == (400, {"query": ["This must be a string."]})


@pytest.mark.parametrize("headers", [CHUNKED, {"Content-Type": "application/json", "Content-Length": "99999999"}])
async def test_a_body_that_is_too_long_is_refused_before_it_is_stored(headers):
    status, body = await exchange("POST", "/api/v1/search/", headers, (b" " * 2**20,) * 6)
    assert (status, json.loads(body)) == (413, {"detail": "The request is larger than 5 MiB."})


async def test_files_may_be_longer_than_texts_and_have_a_limit_too(settings):
    settings.REQUEST_MAX_BYTES = 7 * 2**20
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Transfer-Encoding": "chunked"}
    status, body = await exchange("POST", "/api/v1/search/", headers, (b" " * 2**20,) * 6)
    assert status == 415
    status, body = await exchange("POST", "/api/v1/search/", headers, (b" " * 2**20,) * 8)
    assert (status, json.loads(body)) == (413, {"detail": "The request is larger than 7 MiB."})


async def test_refusals_have_the_form_of_the_protocol_that_is_spoken():
    status, body = await exchange("POST", "/v1/chat/completions", CHUNKED, (b" " * 2**20,) * 6)
    assert (status, json.loads(body)["error"]["type"]) == (413, "invalid_request_error")
    status, body = await exchange("POST", "/ask/", CHUNKED, (b" " * 2**20,) * 6)
    assert (status, body) == (413, b"The request is larger than 5 MiB.")
