from __future__ import annotations

import socket
import threading
import time

import httpx2
import pytest

from retrieval.infrastructure import deadline
from retrieval.infrastructure.model_server import bounded_client
from tests.support.dripping_server import dripping_server


def test_a_server_that_reads_slowly_is_left_in_time() -> None:
    def read(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            # Each write takes less than its time, all of them 15 s.
            while connection.recv(60_000):
                time.sleep(0.03)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=read, args=(listener,), daemon=True).start()
        started = time.monotonic()
        with deadline.limit(2), bounded_client() as client, pytest.raises(httpx2.TimeoutException):
            client.post(f"http://127.0.0.1:{listener.getsockname()[1]}", content=bytes(30_000_000), timeout=2)
        assert time.monotonic() - started < 3.5


def test_a_proxy_that_the_environment_names_is_asked_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with dripping_server("headers", seconds=6) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        started = time.monotonic()
        with deadline.limit(1), bounded_client() as client, pytest.raises(httpx2.ReadTimeout):
            client.get("http://models.example/v1", timeout=1)
        assert 0.9 < time.monotonic() - started < 2.5


def test_without_a_limit_each_read_has_its_own_time() -> None:
    with dripping_server("body", seconds=1) as url, bounded_client() as client:
        with pytest.raises(httpx2.RemoteProtocolError):  # it broke off
            client.get(url, timeout=0.5)
