"""HTTP clients that connect only to allowed addresses, and whose requests end in time.

An httpx timeout limits the wait for each piece; `deadline.limit_time` limits a whole request.
"""

from __future__ import annotations

import asyncio
import functools
import math
import ssl
from collections.abc import Callable, Iterable, Sequence
from ssl import SSLContext
from typing import Any

import httpcore2
import httpx2

from core import deadline


@functools.cache
def load_trusted_certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


_PIECE_BYTES = 4096

Resolve = Callable[[str, int], Sequence[str]]


def build_bounded_client(resolve: Resolve = lambda host, _port: [host], **options: Any) -> httpx2.Client:
    """Return a client that connects only to the IP addresses from ``resolve``, also after redirects.

    Raises: httpx2.TimeoutException at the deadline of `deadline.limit_time`.
    """
    client = httpx2.Client(verify=load_trusted_certificates(), **options)
    for transport in (client._transport, *client._mounts.values()):
        # The existing transports are changed, because a new one would ignore the proxies in the environment.
        if isinstance(transport, httpx2.HTTPTransport):
            transport._pool._network_backend = _DeadlineBackend(resolve)
    return client


def _limit_timeout(timeout: float | None) -> float | None:
    left = deadline.seconds_left(math.inf)
    if left <= 0:
        raise httpcore2.ReadTimeout("The whole request took too long.")
    return timeout if math.isinf(left) else min(left, timeout or left)


class _DeadlineBackend(httpcore2.NetworkBackend):
    def __init__(self, resolve: Resolve) -> None:
        self._backend = httpcore2.SyncBackend()
        self._resolve = resolve

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        failure: Exception | None = None
        for address in self._resolve(host, port):
            try:
                stream = self._backend.connect_tcp(
                    address, port, _limit_timeout(timeout), local_address, socket_options
                )
                return _DeadlineStream(stream)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address.")


class _DeadlineStream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _limit_timeout(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE_BYTES):
            self._stream.write(buffer[start : start + _PIECE_BYTES], _limit_timeout(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, _limit_timeout(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def build_async_client(resolve: Resolve | None, **options: Any) -> httpx2.AsyncClient:
    """Return an async client that connects only to the IP addresses from ``resolve``; None allows all.

    Addresses are not checked if the environment names a proxy.
    """
    client = httpx2.AsyncClient(verify=load_trusted_certificates(), **options)
    if resolve is not None:
        client._transport._pool._network_backend = _AddressCheckingBackend(resolve)  # type: ignore[attr-defined]
    return client


class _AddressCheckingBackend(httpcore2.AnyIOBackend):
    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    async def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        failure: Exception | None = None
        addresses = await asyncio.to_thread(self._resolve, host, port)
        for address in addresses:
            try:
                return await super().connect_tcp(address, port, *args, **options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address.")
