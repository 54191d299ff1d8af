"""HTTP servers of tests: each on loopback, in a thread of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def read_json(self) -> Any:
        return json.loads(self.read_body())

    def send(self, payload: bytes = b"", status: int = 200, drip_seconds: float = 0.0, **headers: str) -> None:
        """Send a whole answer; headers have underscores in their names, and bytes come ``drip_seconds`` apart.

        A request for the headers alone gets only these; a caller who has left is ignored.
        """
        try:
            self.send_response(status)
            for name, value in {"Content_Length": str(len(payload)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command == "HEAD":
                return
            size = 1 if drip_seconds else len(payload) or 1
            for start in range(0, len(payload), size):
                self.wfile.write(payload[start : start + size])
                time.sleep(drip_seconds)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Yield the address of a server with this handler; any free port."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
