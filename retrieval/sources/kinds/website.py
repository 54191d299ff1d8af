"""A website: the pages that its start page leads to, or those of its sitemap."""

from __future__ import annotations

import mimetypes
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.network import (
    USER_AGENT,
    HttpConnector,
    Response,
    check_item,
    check_listing,
    children,
    join,
    parse_xml,
    text_of,
)
from retrieval.sources.options import Account, AddressField, Options
from retrieval.sources.protocol import (
    Fetched,
    ItemFailed,
    ItemGone,
    RemoteItem,
    SourceRefused,
    SourceUnavailable,
)
from retrieval.text.encodings import codec_of

_MOST_CHARACTERS = 3 * 2**20


class PageLinks(HTMLParser):
    """The addresses in the first three million characters of a page, as they are written. ``base`` is what they are
    relative to; empty: the page itself.
    """

    def __init__(self, data: bytes, charset: str) -> None:
        super().__init__(convert_charrefs=False)
        self.base = self.canonical = ""
        self.links: list[str] = []
        self.is_indexed = self.is_followed = True
        text = data[: 4 * _MOST_CHARACTERS].decode(codec_of(charset) or "utf-8", "replace")
        # Not closed: what is open at the end is no link, and looking for its end again and again takes long.
        self.feed(text[:_MOST_CHARACTERS])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: (value or "").strip() for name, value in attrs}
        relations = values.get("rel", "").lower().split()
        if tag == "a" and values.get("href") and "nofollow" not in relations:
            self.links.append(values["href"])
        elif tag == "base":
            self.base = self.base or values.get("href", "")
        elif tag == "link" and "canonical" in relations:
            self.canonical = self.canonical or values.get("href", "")
        elif tag == "meta" and values.get("name", "").lower() in ("robots", "ragsite"):
            said = values.get("content", "").lower()
            self.is_indexed = self.is_indexed and "noindex" not in said and "none" not in said
            self.is_followed = self.is_followed and "nofollow" not in said and "none" not in said


_HTML = ("text/html", "application/xhtml+xml")
_NO_DOCUMENTS = ("image/", "audio/", "video/", "font/")
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_SITEMAPS = 200
_LONGEST_DELAY = 60.0


class WebsiteOptions(Options, Account):
    url = AddressField(label=_("Start page"), help_text=_("Only pages of the same host are read."))
    way = forms.ChoiceField(
        label=_("Pages"),
        choices=[("crawl", _("pages that the start page links to")), ("sitemap", _("pages in the sitemap"))],
        initial="crawl",
        help_text=_("The sitemap is the start page itself, the one that robots.txt names, or /sitemap.xml."),
    )
    depth = forms.IntegerField(
        label=_("Depth"), min_value=0, max_value=50, initial=5, help_text=_("Links between the start page and a page.")
    )
    delay = forms.FloatField(
        label=_("Seconds between requests"),
        min_value=0,
        max_value=_LONGEST_DELAY,
        initial=1.0,
        help_text=_("If robots.txt asks for a longer pause, that one is kept. Pages that it forbids are not read."),
    )


class WebsiteConnector(HttpConnector):
    name = "website"
    label = _("Website")
    description = _("Pages of a host, found by following links or in the sitemap.")
    form = WebsiteOptions
    interval_minutes = 1440

    def __init__(self, options: Mapping[str, Any], number: int) -> None:
        super().__init__(options, number)
        self._hosts = {urlsplit(self._address).netloc}
        self._asked_at = 0.0
        self._robots: Any = None

    def _read_address(self) -> str:
        return normalise(super()._read_address())

    def list_items(self) -> Iterator[RemoteItem]:
        self._read_robots()
        if self.options.get("way") != "sitemap":
            yield self._item(self._address, depth=0, is_entry=True)
            return
        for url in self._read_sitemaps():
            if self._is_here(url):
                yield self._item(url, depth=0)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> Fetched | None:
        if not self._robots.can_fetch(item.key, USER_AGENT):
            if item.is_entry:
                raise SourceRefused(_t("The robots.txt of this site forbids reading %s.") % item.key)
            raise ItemGone(item.name)
        response = self._ask(item.key, validators)
        if response.status in _REDIRECTS and response.headers.get("location"):
            return self._follow(item, join(response.url, response.headers["location"]))
        if item.is_entry:
            check_listing(response)
        if response.is_unchanged:
            return None
        check_item(response, item.name)
        name, media_type = name_and_type(item.name, response)
        if media_type in _HTML:
            return self._read_page(item, name, response)
        if media_type.startswith(_NO_DOCUMENTS):
            return Fetched(None, validators=response.validators)
        return Fetched(response.body, name=name, validators=response.validators)

    def _follow(self, item: RemoteItem, target: str) -> Fetched:
        """A redirect: its target is an item of its own. The start page may lead to another host, such as that with
        www."""
        if item.is_entry:
            self._hosts.add(urlsplit(target).netloc)
        if not self._is_here(target):
            return Fetched(None)
        return Fetched(None, links=(self._item(normalise(target), item.depth, is_entry=item.is_entry),))

    def _read_page(self, item: RemoteItem, name: str, response: Response) -> Fetched:
        page = PageLinks(response.body, response.charset)
        base = response.url
        with suppress(ItemFailed):
            base = join(response.url, page.base) if page.base else response.url
        canonical = self._canonical(base, page)
        if canonical and canonical != item.key:
            return Fetched(None, validators=response.validators, links=(self._item(canonical, item.depth),))
        said = response.headers.get("x-robots-tag", "").lower()
        links: tuple[RemoteItem, ...] = ()
        if page.is_followed and item.depth < self.options.get("depth", 5) and self.options.get("way") != "sitemap":
            links = tuple(self._links(base, page, item.depth + 1))
        is_indexed = page.is_indexed and "noindex" not in said
        return Fetched(
            response.body if is_indexed else None,
            name=name,
            validators=response.validators,
            links=links,
        )

    def _canonical(self, base: str, page: PageLinks) -> str:
        """The page's canonical address if it is on this site; else empty."""
        if page.canonical:
            with suppress(ItemFailed):
                canonical = normalise(join(base, page.canonical))
                if self._is_here(canonical):
                    return canonical
        return ""

    def _links(self, base: str, page: PageLinks, depth: int) -> Iterator[RemoteItem]:
        seen = set()
        for link in page.links:
            with suppress(ItemFailed):
                url = normalise(join(base, link))
                if url not in seen and self._is_here(url):
                    seen.add(url)
                    yield self._item(url, depth)

    def _item(self, url: str, depth: int, *, is_entry: bool = False) -> RemoteItem:
        return RemoteItem(url, name_of(url), url=url, depth=depth, is_entry=is_entry)

    def _is_here(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and parts.netloc in self._hosts

    # Asking ---------------------------------------------------------------------------------------------------------

    def _ask(self, url: str, headers: Mapping[str, str], redirects: int = 0) -> Response:
        """The answer to a request that is sent after the site's delay."""
        asked = self._robots.crawl_delay(USER_AGENT) if self._robots is not None else None
        delay = max(float(self.options.get("delay", 1.0)), float(asked or 0.0))
        wait = self._asked_at + min(delay, _LONGEST_DELAY) - time.monotonic()
        if self._asked_at and wait > 0:
            time.sleep(wait)
        try:
            return self._client.get(url, headers=headers, redirects=redirects)
        finally:
            self._asked_at = time.monotonic()

    def _read_robots(self) -> None:
        from protego import Protego

        response = self._ask(join(self._address, "/robots.txt"), {}, redirects=5)
        if response.status >= 500:
            raise SourceUnavailable(
                _t("The robots.txt of %s could not be read, so nothing is read from this site.") % self._address
            )
        text = response.body[: 500 * 1024].decode("utf-8", "replace") if response.status == 200 else ""
        self._robots = Protego.parse(text)

    def _read_sitemaps(self) -> Iterator[str]:
        """The addresses of pages in the sitemaps. Raises: SourceRefused where there is none."""
        path = urlsplit(self._address).path
        if path.endswith((".xml", ".xml.gz")):
            waiting = [self._address]
        else:
            waiting = list(self._robots.sitemaps) or [join(self._address, "/sitemap.xml")]
        seen: set[str] = set()
        while waiting:
            url = waiting.pop(0)
            if url in seen:
                continue
            seen.add(url)
            if len(seen) > _MOST_SITEMAPS:
                raise SourceRefused(_t("There are more than %d sitemaps.") % _MOST_SITEMAPS)
            response = self._ask(url, {}, redirects=5)
            check_listing(response)
            try:
                root = parse_xml(_unpack(response.body))
            except ValueError as error:
                raise SourceRefused(_t("%s is not a sitemap.") % url) from error
            waiting += [text_of(each, "loc") for each in children(root, "sitemap")]
            for each in children(root, "url"):
                with suppress(ItemFailed):
                    yield normalise(join(url, text_of(each, "loc")))


def normalise(url: str) -> str:
    """The address without its fragment and the parameters of campaigns (`utm_…`), so that one page has one address.

    Raises: ItemFailed for what is no address.
    """
    parts = urlsplit(join(url, ""))
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not pair[0].startswith("utm_")]
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", urlencode(query), ""))


def name_of(url: str) -> str:
    """The name of a page within its site."""
    parts = urlsplit(url)
    name = unquote(parts.path).strip("/") or "index"
    if parts.query:
        name += f"?{parts.query}"
    return "".join(character for character in name if character.isprintable())


def name_and_type(name: str, response: Response) -> tuple[str, str]:
    """The name with the ending of what was sent, and its media type."""
    if response.media_type in _HTML or not response.media_type:
        return _with_ending(name, ".html"), _HTML[0]
    return _with_ending(name, mimetypes.guess_extension(response.media_type) or ""), response.media_type


def _with_ending(name: str, ending: str) -> str:
    is_named = bool(re.search(r"\.\w{1,5}$", name)) and not (ending == ".html" and not re.search(r"\.x?html?$", name))
    return name if is_named else name + ending


def _unpack(data: bytes) -> bytes:
    """The sitemap, decompressed if needed. Raises: ValueError for one that is damaged or too large."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    unpacking = zlib.decompressobj(31)
    try:
        text = unpacking.decompress(data, settings.DOCUMENT_MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if unpacking.unconsumed_tail:
        raise ValueError("too large")
    return text
