from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any


def find_network(address: str) -> str:
    """Return the part of an IP address whose requests are limited together: the IPv4 address, or its IPv6 /64."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
    return address


def find_address(request: Any) -> str:
    # DRF reads the settings when it is imported, and the web server imports this module before there are settings.
    from rest_framework.throttling import BaseThrottle

    return find_network(str(BaseThrottle().get_ident(request) or ""))


def identify_caller(request: Any) -> str:
    """Return the key for a caller's rate limits: the account's id, or a visitor's address."""
    return str(request.user.pk) if request.user.is_authenticated else find_address(request)
