"""Which machines may be asked: none inside the site's own network, unless SOURCE_PRIVATE_HOSTS names it."""

from __future__ import annotations

import ipaddress
import socket

from django.conf import settings
from django.utils.translation import gettext as _t

from retrieval.sources.protocol import AddressRefused, SourceUnavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Addresses of IPv6 that lead to an IPv4 address, which stands in their last 32 bits.
_TRANSLATED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


def resolve(host: str, port: int) -> list[str]:
    """The addresses to connect to, and to no others: a name may mean another machine when it is looked up again.

    Raises: AddressRefused when one of them is not allowed, SourceUnavailable when there is none.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceUnavailable(_t("There is no machine named %s.") % host) from error
    addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
    for address in addresses:
        if not _is_allowed(host, ipaddress.ip_address(address)):
            raise AddressRefused(_t("%s is inside this site's own network: allow it with SOURCE_PRIVATE_HOSTS.") % host)
    return addresses


def _is_allowed(host: str, address: Address) -> bool:
    if _is_public(address):
        return True
    allowed = [name.lower() for name in settings.SOURCE_PRIVATE_HOSTS]
    return host.lower() in allowed or any(address in network for network in map(_as_network, allowed) if network)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and any(address in network for network in _TRANSLATED):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public(inner)
    return address.is_global and not address.is_multicast


def _as_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
