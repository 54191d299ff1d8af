"""Requests as bytes, at the real web server: what is no request of this site is answered with 4xx."""

import socket

import pytest

from tests.support.site import WebServer

pytestmark = pytest.mark.django_db(transaction=True)

WEBSOCKET = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
HOST = "Host: localhost\r\n"
LAST = "Connection: close\r\n"


@pytest.fixture(scope="module")
def server(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock():
        made = WebServer(tmp_path_factory.mktemp("wire") / "web.log")
    yield made
    made.stop()


def status_of(server, request):
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(request.encode("latin-1"))
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (f"GET /healthz HTTP/1.1\r\n{HOST}{LAST}", {200}),
        (f"GET /healthz HTTP/1.1\r\n{LAST}", {400}),
        (f"GET / HTTP/1.1\r\n{LAST}", {400}),
        (f"GET /api/v1/collections/ HTTP/1.1\r\n{LAST}", {400}),
        (f"GET /static/chat/site.css HTTP/1.1\r\n{LAST}", {400}),
        (f"GET /healthz HTTP/1.1\r\nHost:\r\n{LAST}", {400}),
        (f"GET /healthz HTTP/1.1\r\n{HOST}{HOST}{LAST}", {400}),
        (f"GET /healthz HTTP/1.1\r\n{HOST}Host: evil.example\r\n{LAST}", {400}),
        (f"GET /api/v1/collections/ HTTP/1.1\r\nHost: evil.example\r\n{LAST}", {400}),
        ("GET /healthz HTTP/1.0\r\n", {200}),
        *((f"GET {path} HTTP/1.1\r\n{HOST}{WEBSOCKET}", {403}) for path in ("/", "/mcp", "/ask/", "/healthz")),
        (f"GET / HTTP/1.1\r\n{WEBSOCKET}", {400, 403}),
        (f"GET / HTTP/1.1\r\n{HOST}{WEBSOCKET.replace('13', '8')}", {426}),
        (f"GET / HTTP/1.1\r\n{HOST}{WEBSOCKET.replace('dGhl', '')}", {400}),
    ],
)  # fmt: skip
def test_the_status(server, head, expected):
    assert status_of(server, f"{head}\r\n") in expected
