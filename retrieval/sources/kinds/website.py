"""Read the pages of a website, by following links or from its sitemap."""

from __future__ import annotations

import codecs
import mimetypes
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from django import forms
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.network import (
    HTML_TYPES,
    MOST_REDIRECTS,
    USER_AGENT,
    HttpConnector,
    Response,
    check_item_response,
    check_listing_response,
    find_children,
    join_address,
    parse_xml,
    read_text,
)
from retrieval.sources.options import SourceAccountForm, SourceOptionsForm, WebAddressField
from retrieval.sources.protocol import (
    FetchedItem,
    ItemFailed,
    RemoteItem,
    SourceUnavailable,
    SourceUnreadable,
)
from retrieval.text.encodings import find_python_codec

_MOST_CHARACTERS = 3 * 2**20


# Directives for robots with a value after a colon. Other words before a colon are names of robots.
_VALUED = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))
_REFRESH = re.compile(r"\s*+(\d{1,6}+)[\d.]*+[;,\s]++(?:url\s*+=\s*+)?[\"']?([^\"'\s]+)", re.I)
_WORD = re.compile(r"\w+")


class Robots:
    def __init__(self) -> None:
        self.is_indexed = self.is_followed = True

    def read_directives(self, said: str) -> None:
        is_for_this, rest = True, said
        while rest:
            word, _comma, rest = rest.partition(",")
            name, colon, value = (part.strip().lower() for part in word.partition(":"))
            if name == "unavailable_after":
                if value.isalpha():
                    # A date is "weekday, day".
                    value, _comma, rest = rest.partition(",")
                self.is_indexed = self.is_indexed and not (is_for_this and _is_past(value))
            elif colon and name not in _VALUED:
                is_for_this, name = name in ("*", USER_AGENT.lower()), value
            told = set(name.split()) if is_for_this else set()
            self.is_indexed = self.is_indexed and told.isdisjoint(("noindex", "none"))
            self.is_followed = self.is_followed and told.isdisjoint(("nofollow", "none"))


def _is_past(date: str) -> bool:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, TypeError):
            found = read(date.strip().upper())
            return (found if found.tzinfo else found.replace(tzinfo=UTC)) < timezone.now()
    return False


class PageLinks(HTMLParser):
    """The links in the first three million characters of a page, as written there.

    Links are relative to ``base``, or to the page's address if ``base`` is empty. After ``refresh_seconds``, the page
    redirects to ``refresh``.
    """

    def __init__(self, data: bytes, charset: str) -> None:
        super().__init__(convert_charrefs=False)
        self.base = self.canonical = self.refresh = ""
        self.refresh_seconds = 0
        self.links: list[str] = []
        self.frames: list[str] = []
        self.words: set[str] = set()
        self.robots = Robots()
        self._unseen = 0
        text = data[: 4 * _MOST_CHARACTERS].decode(find_python_codec(charset) or "utf-8", "replace")
        # `close` is slow, because it searches several times for the end of an unclosed tag.
        self.feed(text[:_MOST_CHARACTERS])

    def resolve_base(self, response: Response) -> str:
        with suppress(ItemFailed):
            return join_address(response.url, self.base)
        return response.url

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: (value or "").strip() for name, value in attrs}
        relations = values.get("rel", "").lower().split()
        self._unseen += tag in _UNSEEN
        if tag in ("a", "area") and values.get("href") and "nofollow" not in relations:
            self.links.append(values["href"])
        elif tag in ("frame", "iframe") and values.get("src"):
            (self.frames if tag == "frame" else self.links).append(values["src"])
        elif tag == "base":
            self.base = self.base or values.get("href", "")
        elif tag == "link" and "canonical" in relations:
            self.canonical = self.canonical or values.get("href", "")
        elif tag == "link" and "next" in relations and values.get("href"):
            self.links.append(values["href"])
        elif tag == "meta" and values.get("name", "").lower() in ("robots", USER_AGENT.lower()):
            self.robots.read_directives(values.get("content", ""))
        elif tag == "meta" and values.get("http-equiv", "").lower() == "refresh" and not self._unseen:
            self.read_refresh_target(values.get("content", ""))

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.words.update(_WORD.findall(data.lower()))

    def read_refresh_target(self, said: str) -> None:
        if (found := _REFRESH.match(said)) and not self.refresh:
            self.refresh_seconds, self.refresh = int(found[1]), found[2]


_UNSEEN = frozenset(("script", "style", "noscript", "template"))
_NO_DOCUMENTS = ("image/", "audio/", "video/", "font/")
# These media types only mean "save the file", so the extension decides, except for extensions in _PROGRAMS.
_ANY_TYPE = frozenset(
    """
    application/octet-stream binary/octet-stream application/force-download application/x-download application/download
    application/x-unknown application/unknown
    """.split()  # noqa: SIM905
)
_PROGRAMS = re.compile(r"\.(?:php\d?|aspx?|ashx|jspx?|cgi|pl|cfm|do|action)$", re.I)
_REDIRECTS = (301, 302, 303, 307, 308)
_NO_ADDRESS = re.compile(r"utm_|(?:fbclid|gclid|msclkid|phpsessid|jsessionid|aspsessionid\w*)=", re.I)
# URL parameters with the address to which a site returns, as after signing in.
_WAY_BACK = re.compile(r"next|url|return|redirect|continue|dest|goto|target|back|service", re.I)
_SESSION = re.compile(r";jsessionid=[^/;]*", re.I)
_MOST_SITEMAPS = 200
_LONGEST_DELAY = 60.0
# A page becomes a document although it names another original (rel=canonical), if the original lacks more than this
# share of the page's words.
_OWN_SHARE = 0.05
_MOST_KEPT = 20


class WebsiteOptions(SourceOptionsForm, SourceAccountForm):
    url = WebAddressField(label=_("Start page"), help_text=_("Only pages of the same host are read."))
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
        self._hosts = {urlsplit(self._address).netloc.removeprefix("www.")}
        self._asked_at = 0.0
        self._robots: Any = None
        # ``_trails`` maps an address to the addresses that redirected to it. ``_answers`` are responses that were
        # requested early.
        self._trails: dict[str, tuple[str, ...]] = {}
        self._answers: dict[str, Response] = {}
        self._originals: dict[str, set[str] | None] = {}

    def _read_address(self) -> str:
        return normalise_address(super()._read_address())

    def list_items(self) -> Iterator[RemoteItem]:
        self._read_robots()
        if self.options.get("way") != "sitemap":
            yield self._build_item(self._address, depth=0, is_entry=True)
            return
        for url in self._read_sitemaps():
            yield self._build_item(url, depth=0)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem | None:
        if not self._is_on_site(item.key):
            return FetchedItem(None, reason=_t("it is a page of another site"))
        if not self._robots.can_fetch(item.key, USER_AGENT):
            if item.is_entry:
                raise SourceUnreadable(_t("The robots.txt of this site forbids reading %s.") % item.key)
            return FetchedItem(None, reason=_t("the robots.txt of the site forbids reading it"))
        response = self._answers.pop(item.key, None) or self._request(item.key, validators)
        if response.status in _REDIRECTS and response.headers.get("location"):
            target = join_address(response.url, response.headers["location"])
            if normalise_address(target) != item.key:
                return self._follow_redirect(item, target)
            # The site redirects to the same address until the client sends its cookie.
            response = self._request(item.key, {})
        if item.is_entry:
            check_listing_response(response)
        if response.is_unchanged:
            return None
        check_item_response(response, item.name)
        name, media_type = derive_name_and_type(item.name, response)
        robots = Robots()
        for said in response.headers.get("x-robots-tag", "").splitlines():
            robots.read_directives(said)
        if media_type in HTML_TYPES:
            return self._read_page(item, name, response, robots)
        if media_type.startswith(_NO_DOCUMENTS):
            return FetchedItem(None, validators=response.validators)
        if not robots.is_indexed:
            return FetchedItem(None, validators=response.validators, reason=_t("it asks not to be read (noindex)"))
        return FetchedItem(response.text_body, name=name, validators=response.validators)

    def _follow_redirect(self, item: RemoteItem, target: str) -> FetchedItem:
        if item.is_entry:
            self._hosts.add(urlsplit(target).netloc.removeprefix("www."))
        if not self._is_on_site(target):
            return FetchedItem(None, reason=_t("it leads to another site, %s") % target)
        url = normalise_address(target)
        ways = (value for name, value in parse_qsl(urlsplit(url).query) if _WAY_BACK.match(name))
        if urlsplit(item.key).path in [urlsplit(way).path for way in ways]:
            return FetchedItem(None, reason=_t("it asks to sign in or to consent first, at %s") % url)
        trail = (*self._trails.get(item.key, ()), item.key)
        if url in trail or len(trail) > MOST_REDIRECTS:
            raise ItemFailed(_t("%s redirects too many times.") % item.key)
        self._trails[url] = trail
        return FetchedItem(None, links=(self._build_item(url, item.depth, is_entry=item.is_entry),))

    def _read_page(self, item: RemoteItem, name: str, response: Response, robots: Robots) -> FetchedItem:
        page = PageLinks(response.body, response.charset)
        page.read_refresh_target(response.headers.get("refresh", ""))
        base = page.resolve_base(response)
        canonical = self._resolve_local_link(base, page.canonical)
        # Addresses that differ only in the scheme are the same page.
        is_other = canonical.partition(":")[2] not in ("", item.key.partition(":")[2])
        if is_other and self._has_original(canonical, page):
            reason = _t("it says the same as %s, its original") % canonical
            return FetchedItem(None, links=(self._build_item(canonical, item.depth),), reason=reason)
        refresh = self._resolve_local_link(base, page.refresh) if page.refresh else ""
        if refresh not in ("", item.key):
            if not page.refresh_seconds:
                return self._follow_redirect(item, refresh)
            page.links.append(page.refresh)
        links: list[RemoteItem] = []
        is_followed = robots.is_followed and page.robots.is_followed
        if is_followed and self.options.get("way") != "sitemap":
            links += self._build_link_items(base, page.frames, item.depth)
            if item.depth < self.options.get("depth", 5):
                links += self._build_link_items(base, page.links, item.depth + 1)
        is_indexed = robots.is_indexed and page.robots.is_indexed
        is_document = is_indexed and not page.frames
        reason = "" if is_indexed else _t("it asks not to be read (noindex)")
        body = response.text_body if is_document else None
        return FetchedItem(body, name=name, validators=response.validators, links=tuple(links), reason=reason)

    def _resolve_local_link(self, base: str, link: str) -> str:
        with suppress(ItemFailed):
            if link and self._is_on_site(address := normalise_address(join_address(base, link))):
                return address
        return ""

    def _has_original(self, address: str, page: PageLinks) -> bool:
        if address not in self._originals:
            self._originals[address] = self._read_words_of_original(address)
        original = self._originals[address]
        return original is not None and len(page.words - original) <= _OWN_SHARE * len(page.words)

    def _read_words_of_original(self, address: str) -> set[str] | None:
        """Return the words of a page; None if it cannot be read, or if its canonical link names another page."""
        try:
            if not self._robots.can_fetch(address, USER_AGENT):
                return None
            response = self._request(address, {})
        except (SourceUnavailable, ItemFailed):
            return None
        if response.status != HTTPStatus.OK or derive_name_and_type("", response)[1] not in HTML_TYPES:
            return None
        if len(self._answers) < _MOST_KEPT:
            self._answers[address] = response
        page = PageLinks(response.body, response.charset)
        canonical = self._resolve_local_link(page.resolve_base(response), page.canonical)
        return page.words if page.robots.is_indexed and canonical in ("", address) else None

    def _build_link_items(self, base: str, links: list[str], depth: int) -> Iterator[RemoteItem]:
        seen = set()
        for link in links:
            with suppress(ItemFailed):
                url = normalise_address(join_address(base, link))
                if url not in seen and self._is_on_site(url):
                    seen.add(url)
                    yield self._build_item(url, depth)

    def _build_item(self, url: str, depth: int, *, is_entry: bool = False) -> RemoteItem:
        return RemoteItem(url, derive_name(url), url=url, depth=depth, is_entry=is_entry)

    def _is_on_site(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and parts.netloc.removeprefix("www.") in self._hosts

    def _request(self, url: str, headers: Mapping[str, str], redirects: int = 0) -> Response:
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

        response = self._request(join_address(self._address, "/robots.txt"), {}, redirects=5)
        if response.status >= 500:
            raise SourceUnavailable(
                _t("The robots.txt of %s could not be read, so nothing is read from this site.") % self._address
            )
        text = response.body[: 500 * 1024].decode("utf-8", "replace") if response.status == 200 else ""
        self._robots = Protego.parse(text)

    def _read_sitemaps(self) -> Iterator[str]:
        path = urlsplit(self._address).path
        if path.endswith((".xml", ".xml.gz")):
            waiting = [self._address]
        else:
            waiting = [join_address(self._address, each) for each in self._robots.sitemaps or ["/sitemap.xml"]]
        seen: set[str] = set()
        while waiting:
            url = waiting.pop(0)
            if url in seen:
                continue
            seen.add(url)
            if len(seen) > _MOST_SITEMAPS:
                raise SourceUnreadable(_t("There are more than %d sitemaps.") % _MOST_SITEMAPS)
            response = self._request(url, {}, redirects=5)
            check_listing_response(response)
            try:
                root = parse_xml(_decompress_sitemap(response.body).lstrip(codecs.BOM_UTF8 + b"\r\n\t "))
                if not str(root.tag).endswith(("urlset", "sitemapindex")):
                    raise ValueError("another kind of XML")
            except ValueError as error:
                raise SourceUnreadable(_t("%s is not a sitemap.") % url) from error
            waiting += [read_text(each, "loc") for each in find_children(root, "sitemap")]
            for each in find_children(root, "url"):
                with suppress(ItemFailed):
                    yield normalise_address(join_address(url, read_text(each, "loc")))


def normalise_address(url: str) -> str:
    """Return the address without fragment, campaign parameters (`utm_…`) and session ids.

    Raises: ItemFailed if it is not an address.
    """
    parts = urlsplit(join_address(url, ""))
    # The parameters that remain keep their exact form: servers distinguish /wiki?Opening and /wiki?Opening=.
    query = "&".join(pair for pair in parts.query.split("&") if not _NO_ADDRESS.match(pair))
    return urlunsplit((parts.scheme, parts.netloc, _SESSION.sub("", parts.path) or "/", query, ""))


def derive_name(url: str) -> str:
    parts = urlsplit(url)
    name = unquote(parts.path).strip("/") or "index"
    if parts.query:
        name += f"?{parts.query.rstrip('/')}"
    return "".join(character for character in name if character.isprintable())


def derive_name_and_type(name: str, response: Response) -> tuple[str, str]:
    """Return the file's name, with an extension that fits its content, and its media type."""
    if response.filename:
        folder = name.partition("?")[0].rpartition("/")[0]
        name = f"{folder}/{response.filename}" if folder else response.filename
    if response.media_type in HTML_TYPES or not response.media_type:
        return _replace_extension(name, ".html"), HTML_TYPES[0]
    if response.media_type in _ANY_TYPE:
        return name, response.media_type
    return _replace_extension(name, mimetypes.guess_extension(response.media_type) or ""), response.media_type


def _replace_extension(name: str, ending: str) -> str:
    is_page = bool(re.search(r"\.x?html?$", name))
    is_named = is_page if ending == ".html" else bool(re.search(r"\.\w{1,5}$", name)) and not _PROGRAMS.search(name)
    return name if is_named else name + ending


def _decompress_sitemap(data: bytes) -> bytes:
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
