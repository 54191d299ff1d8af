"""Connections to machines that may be asked, and no longer than the whole request may take."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from ssl import SSLContext
from typing import Any

import httpcore2
import httpx2

from retrieval.resilience.certificates import trusted_certificates
from retrieval.sources.network.addresses import resolve


class RequestDeadline:
    """When the request under way has to be over. The pauses of a server that sends a byte now and then are short."""

    def __init__(self) -> None:
        self._at = math.inf

    def begin(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def within(self, timeout: float | None) -> float | None:
        """How long may be waited now. Raises: httpcore2.ReadTimeout when it is over."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("The whole request took too long.")
        return timeout if math.isinf(left) else min(left, timeout or left)


class Transport(httpx2.HTTPTransport):
    def __init__(self, deadline: RequestDeadline) -> None:
        context = trusted_certificates()
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.ConnectionPool(ssl_context=context, network_backend=_AllowedAddresses(deadline))


class _AllowedAddresses(httpcore2.NetworkBackend):
    """Connects to the very addresses that were looked up and allowed; at every connection, so at each redirect too."""

    def __init__(self, deadline: RequestDeadline) -> None:
        self._backend = httpcore2.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        failure: Exception | None = None
        for address in resolve(host, port):
            try:
                within = self._deadline.within(timeout)
                stream = self._backend.connect_tcp(address, port, within, local_address, socket_options)
                return _BoundedStream(stream, self._deadline)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address.")


class _BoundedStream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: RequestDeadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.within(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.within(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        inner = self._stream.start_tls(ssl_context, server_hostname, self._deadline.within(timeout))
        return _BoundedStream(inner, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
