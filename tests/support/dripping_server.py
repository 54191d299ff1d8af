"""A server that sends a byte now and then, each sooner than any silence would be noticed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
# What is sent at once, and what is then sent again and again.
DRIPS = {
    "headers": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "chunk extension": (_CHUNKED + b"\r\n1;name=", b"x"),
    "empty gzip": (_CHUNKED + b"Content-Encoding: gzip\r\n\r\na\r\n\x1f\x8b\x08\x08\0\0\0\0\0\x03\r\n", b"1\r\nx\r\n"),
    "body": (_CHUNKED + b"\r\n", b"1\r\n \r\n"),
}


@contextmanager
def dripping_server(kind: str, seconds: float) -> Iterator[str]:
    """Its address. Every connection lasts ``seconds``, unless the caller leaves."""
    listener = socket.create_server(("127.0.0.1", 0))

    def drip(connection: socket.socket) -> None:
        head, piece = DRIPS[kind]
        ends_at = time.monotonic() + seconds
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            while time.monotonic() < ends_at:
                connection.sendall(piece)
                time.sleep(0.1)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
