"""The certificate authorities that this machine trusts."""

from __future__ import annotations

import functools
import ssl

import httpx2


@functools.cache
def trusted_certificates() -> ssl.SSLContext:
    """For all HTTP clients of the process: to read them takes tens of milliseconds. `SSL_CERT_FILE` names others."""
    return httpx2.create_ssl_context()
