from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any


def find_network(address: str) -> str:
    """Return the address for which requests are limited.

    For IPv6, it is the /64 network of a customer; for IPv4, it is the address itself.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
    return address


def find_address(request: Any) -> str:
    # The import is here, because DRF reads the settings when it is imported, and the web server imports this module
    # before there are settings.
    from rest_framework.throttling import BaseThrottle

    return find_network(str(BaseThrottle().get_ident(request) or ""))


def identify_caller(request: Any) -> str:
    """Return a text that identifies the caller for limits: the account's id, or a visitor's address."""
    return str(request.user.pk) if request.user.is_authenticated else find_address(request)
