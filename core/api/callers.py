"""Identifies the caller of a request for rate limits."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any


def network_of(address: str) -> str:
    """The address as limits count it: for IPv6 the network of 64 bits, which is one customer's; text that is not an
    address is returned unchanged.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
    return address


def address_of(request: Any) -> str:
    """The caller's address according to NUM_PROXIES, as limits count it."""
    # The web server needs this module before the settings, which DRF reads when it is imported.
    from rest_framework.throttling import BaseThrottle

    return network_of(str(BaseThrottle().get_ident(request) or ""))


def caller_of(request: Any) -> str:
    """The account, whichever API key it uses; without an account, the address."""
    return str(request.user.pk) if request.user.is_authenticated else address_of(request)
