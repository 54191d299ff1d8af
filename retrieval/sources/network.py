"""Send HTTP requests to other machines. Addresses in the site's own network are refused without a setting."""

from __future__ import annotations

import codecs
import ipaddress
import re
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import unquote

import httpx2
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _t
from lxml import etree

from core import deadline
from core.encryption import parse_url_origin
from core.http_client import build_bounded_client
from retrieval.sources.protocol import (
    AddressRefused,
    Connector,
    FetchedItem,
    ItemFailed,
    ItemGone,
    ItemRejected,
    RemoteItem,
    SourceUnavailable,
    SourceUnreadable,
)
from retrieval.text.encodings import find_python_codec, find_xml_encoding


def parse_xml(data: bytes) -> etree._Element:
    """Return the root element of XML, parsed without entities and network access.

    Raises: ValueError if it is not XML.
    """
    encoding = find_xml_encoding(data)
    parser = etree.XMLParser(
        encoding=encoding, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from error


def find_children(element: etree._Element, name: str) -> list[etree._Element]:
    return list(element.iterfind(f".//{{*}}{name}"))


def read_text(element: etree._Element, name: str) -> str:
    return (element.findtext(f".//{{*}}{name}") or "").strip()


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# IPv6 networks whose addresses end with an IPv4 address (RFC 4291, 2.5.5; RFC 2765; RFC 6052).
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
# Except for addresses in _EMBEDDING, all public IPv6 addresses are in this network (RFC 4291, 2.4).
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


def resolve_host(host: str, port: int) -> list[str]:
    """Return the IP addresses of ``host``, if the site may connect to them.

    Connect only to these, because another lookup may return others. Raises: AddressRefused if one is not allowed,
    SourceUnavailable if there is none.
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
    return host.lower() in allowed or any(address in network for network in map(_parse_network, allowed) if network)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in network for network in _EMBEDDING):
            return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.sixtofour is not None:
            return _is_public(address.sixtofour)
        return address in _GLOBAL_UNICAST and address.is_global
    return address.is_global and not address.is_multicast


def _parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


_EXTENDED_NAME = re.compile(r"\bfilename\*\s*=\s*\"?([\w-]{1,40})'[^']{0,40}'([^;\"\s]+)", re.I)
_NAME = re.compile(r"\bfilename\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^;]+))", re.I)
HTML_TYPES = ("text/html", "application/xhtml+xml")
USER_AGENT = "Ragsite"
REQUEST_SECONDS = 120.0
MOST_REDIRECTS = 5
LONGEST_PAUSE = timedelta(hours=1)
_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response. ``url`` is its address after redirects. The names of ``headers`` are in lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        found = re.search(r"charset=[\"']?([\w.:-]+)", self.headers.get("content-type", ""), re.I)
        return found[1] if found else ""

    @property
    def filename(self) -> str:
        """The file name in the header Content-Disposition (RFC 6266), without folders; may be empty."""
        said = self.headers.get("content-disposition", "")
        if extended := _EXTENDED_NAME.search(said):
            name = unquote(extended[2], find_python_codec(extended[1]) or "utf-8", "replace")
        else:
            found = _NAME.search(said)
            name = re.sub(r"\\(.)", r"\1", found[1] or found[2]) if found else ""
            with suppress(UnicodeError):
                # Many servers send UTF-8, which browsers expect, but the HTTP client decodes headers as Latin-1.
                name = name.encode("latin-1").decode()
        return "".join(filter(str.isprintable, name.replace("\\", "/").rpartition("/")[2])).strip()

    @property
    def text_body(self) -> bytes:
        """The body of the response. Text whose encoding is only in the headers is converted to UTF-8."""
        codec, head = find_python_codec(self.charset), self.body[:1024].lower()
        is_text = self.media_type.startswith("text/") or self.media_type.endswith("+xml")
        is_told = codec == "utf-8" and (b"charset" not in head or b"utf-8" in head)
        if not is_text or not codec or is_told or head.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE)):
            return self.body
        return codecs.BOM_UTF8 + self.body.decode(codec, "replace").encode()

    @property
    def validators(self) -> dict[str, str]:
        """The header with which a later request asks whether the item has changed; {} if the server sent none.

        If the server sent an ETag, the date is left out, because a server that compares both may miss a later change in
        the same second.
        """
        for name, header in (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")):
            if self.headers.get(header):
                return {name: self.headers[header]}
        return {}

    @property
    def is_unchanged(self) -> bool:
        return self.status == HTTPStatus.NOT_MODIFIED


class Client:
    """An HTTP client that sends ``headers`` and the account's password only to ``origin``."""

    def __init__(
        self,
        origin: str,
        *,
        account: tuple[str, str] | None = None,
        headers: Mapping[str, str] = {},
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._origin = parse_url_origin(origin)
        self._auth = httpx2.BasicAuth(*account) if account and any(account) else None
        self._headers = dict(headers)
        self._request_seconds = request_seconds
        seconds = settings.SOURCE_TIMEOUT_SECONDS
        self._client = build_bounded_client(
            resolve_host,
            timeout=httpx2.Timeout(seconds, connect=min(10.0, seconds)),
            headers={"User-Agent": USER_AGENT},
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def get(self, url: str, *, headers: Mapping[str, str] = {}, redirects: int = MOST_REDIRECTS) -> Response:
        return self.request("GET", url, headers=headers, redirects=redirects)

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        content: bytes | None = None,
        redirects: int = MOST_REDIRECTS,
        most_bytes: int = 0,
    ) -> Response:
        """Return the response, whatever its status. If ``redirects`` is 0, no redirect is followed.

        ``most_bytes`` limits the body (default: a document's size limit). Raises: SourceUnavailable without a response
        in time; ItemRejected if the body is too large; AddressRefused.
        """
        with deadline.limit_time(self._request_seconds):
            for _hop in range(redirects + 1):
                response = self._send(method, url, headers, content, most_bytes or settings.DOCUMENT_MAX_BYTES)
                target = response.headers.get("location", "")
                if not redirects or not target or response.status not in (301, 302, 303, 307, 308):
                    return response
                url = join_address(response.url, target)
        raise ItemFailed(_t("%s redirects too many times.") % url)

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, most_bytes: int
    ) -> Response:
        is_own = parse_url_origin(url) == self._origin
        own_headers = self._headers if is_own else {}
        auth = self._auth if is_own else None
        try:
            with self._client.stream(
                method, url, headers={**own_headers, **headers}, content=content, auth=auth
            ) as answer:
                packed = answer.headers.get("content-encoding", "identity").lower()
                if packed not in ("", "identity", *answer.request.headers["accept-encoding"].split(", ")):
                    told = {"url": url, "encoding": packed[:40]}
                    raise ItemFailed(
                        _t("%(url)s is sent in the encoding %(encoding)s, which was not asked for.") % told
                    )
                body = bytearray()
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > most_bytes:
                        limit = max(1, most_bytes // 2**20)
                        raise ItemRejected(_t("%(url)s is larger than %(limit)d MiB.") % {"url": url, "limit": limit})
                lower = {name.lower(): value for name, value in answer.headers.items()}
                # A response may have this header several times, for different robots.
                lower["x-robots-tag"] = "\n".join(answer.headers.get_list("x-robots-tag"))
                return Response(str(answer.url), answer.status_code, lower, bytes(body))
        except httpx2.TimeoutException as error:
            raise SourceUnavailable(_t("%s does not answer in time.") % _read_host(url)) from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise SourceUnavailable(
                _t("%(host)s cannot be reached: %(why)s.")
                % {"host": _read_host(url), "why": str(error) or type(error).__name__}
            ) from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise ItemFailed(_t("%s is not a web address.") % url[:300]) from error


class HttpConnector(Connector):
    def __init__(self, options: Mapping[str, Any], number: int) -> None:
        super().__init__(options, number)
        self._address = self._read_address()
        self._client = self._open_client()

    def _read_address(self) -> str:
        return str(self.options["url"])

    def _open_client(self) -> Client:
        return Client(self._address, account=(self.options.get("username", ""), self.options.get("password", "")))

    def __exit__(self, *error: object) -> None:
        self._client.__exit__(*error)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem | None:
        return read_fetched_item(self._client.get(item.url, headers=validators), item.name)


def read_fetched_item(response: Response, name: str) -> FetchedItem | None:
    """Return the content of the response; None if the item is unchanged.

    Raises: the exceptions of :func:`check_item_response`.
    """
    check_item_response(response, name)
    if response.is_unchanged:
        return None
    is_page = response.media_type in HTML_TYPES
    return FetchedItem(response.text_body if is_page else response.body, validators=response.validators)


def check_item_response(response: Response, name: str) -> None:
    """Raise ItemGone, ItemFailed or SourceUnavailable if the response is an error. Status 304 is no error."""
    if response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        raise ItemGone(name)
    if response.status in _BUSY:
        raise SourceUnavailable(_t("%s asks to wait.") % _read_host(response.url), _read_pause(response))
    if not (200 <= response.status < 300 or response.is_unchanged):
        raise ItemFailed(_t("%(name)s: the server answered %(status)d.") % {"name": name, "status": response.status})


def check_listing_response(response: Response) -> None:
    """Raise SourceUnreadable for a wrong password or address, SourceUnavailable for a temporary error."""
    host = _read_host(response.url)
    if response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise SourceUnreadable(
            _t("%(host)s refused the user name or the password (%(status)d).")
            % {"host": host, "status": response.status}
        )
    if response.status in _BUSY:
        raise SourceUnavailable(_t("%s asks to wait.") % host, _read_pause(response))
    if response.status >= 500:
        raise SourceUnavailable(_t("%(host)s answered %(status)d.") % {"host": host, "status": response.status})
    if not (200 <= response.status < 300 or response.is_unchanged):
        raise SourceUnreadable(
            _t("%(url)s answered %(status)d: check the address.") % {"url": response.url, "status": response.status}
        )


def check_page_is_new(seen: set[str], keys: Collection[str]) -> None:
    """Add the keys of a page of results to ``seen``.

    Raises: SourceUnreadable if no key is new, because the server repeats its results.
    """
    if seen.issuperset(keys):
        raise SourceUnreadable(_t("The listing does not end: a page is empty or was repeated."))
    seen.update(keys)


def join_address(base: str, link: str) -> str:
    """Return the absolute address of a link. Raises: ItemFailed if it is not an address."""
    try:
        return str(httpx2.URL(base).join(link))
    except (httpx2.InvalidURL, ValueError) as error:
        raise ItemFailed(_t("%s is not a web address.") % link[:300]) from error


def _read_pause(response: Response) -> timedelta:
    """Return how long the server asks to wait, from 10 seconds to LONGEST_PAUSE; one minute by default."""
    asked = response.headers.get("retry-after", "")
    try:
        pause = timedelta(seconds=int(asked)) if asked.isdecimal() else parsedate_to_datetime(asked) - timezone.now()
    except (ValueError, TypeError, OverflowError):
        pause = timedelta(minutes=1)
    return min(max(pause, timedelta(seconds=10)), LONGEST_PAUSE)


def _read_host(url: str) -> str:
    return httpx2.URL(url).host
