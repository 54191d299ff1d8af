"""A stranger's connections to a real web server: false addresses, open connections, many connections."""

import contextlib
import resource
import socket

import httpx2
import psutil
import pytest

from tests.support.site import WebServer, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

OPEN_FILES = 400
UNFINISHED = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@pytest.fixture
def server(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The server inherits it, and raises it again.
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
    try:
        started = WebServer(tmp_path / "web.log", ASK_RATE="1/h")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    yield started
    started.stop()


def test_nobody_chooses_an_address_and_no_address_takes_all_connections(server):
    found = [
        httpx2.post(f"{server.url}/api/v1/search/", json={"query": "pump"}, headers={"X-Forwarded-For": f"192.0.2.{n}"})
        for n in range(3)
    ]
    assert [each.status_code for each in found] == [200, 200, 429]

    (web,) = psutil.Process(server.popen.pid).children()
    assert resource.prlimit(web.pid, resource.RLIMIT_NOFILE)[0] > OPEN_FILES
    with contextlib.ExitStack() as lines:
        opened = [
            lines.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30)) for _ in range(600)
        ]
        for line in opened:
            with contextlib.suppress(OSError):
                line.sendall(UNFINISHED)
        # The next connection of this address gets a time to come again; another address gets the page.
        assert opened[-1].recv(100).startswith(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: ")
        elsewhere = httpx2.HTTPTransport(local_address="127.0.0.2")
        assert httpx2.Client(transport=elsewhere).get(f"{server.url}/healthz", timeout=5).status_code == 200
        # Headers that are never finished are not waited for, and what was taken is free again.
        assert opened[0].recv(100) == b""
        wait_until(server.answers, 15, "the address to be served again")
    server.popen.kill()
    assert not psutil.wait_procs([web], 10)[1], "no process outlives the first one"
