"""Which machines may be asked: none inside the site's own network, unless SOURCE_PRIVATE_HOSTS names it."""

from __future__ import annotations

import ipaddress
import socket

from django.conf import settings
from django.utils.translation import gettext as _t

from retrieval.sources.protocol import AddressRefused, SourceUnavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Addresses of IPv6 that lead to an IPv4 address, which stands in their last 32 bits: compatible (RFC 4291, 2.5.5.1),
# mapped (2.5.5.2), translated (RFC 2765), behind a translator (RFC 6052).
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
# All others that the internet routes (RFC 4291, 2.4); the library counts the former site-local ones as global.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


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
        if any(address in network for network in _EMBEDDING):
            return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.sixtofour is not None:
            return _is_public(address.sixtofour)
        return address in _GLOBAL_UNICAST and address.is_global
    return address.is_global and not address.is_multicast


def _as_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
