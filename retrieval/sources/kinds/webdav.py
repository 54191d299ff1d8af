"""A folder of a WebDAV server, such as Nextcloud."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.network.http import HttpConnector, check_item, check_listing, join
from retrieval.sources.network.xml import children, parse_xml, text_of
from retrieval.sources.options import Account, AddressField, Options
from retrieval.sources.protocol import (
    UNCHANGED,
    Fetched,
    RemoteItem,
    SourceKind,
    SourceUnavailable,
    Unchanged,
)

# One level at a time: servers refuse to list everything below at once.
_ONE_LEVEL = {"Depth": "1", "Content-Type": "application/xml"}
_WANTED = (
    b'<?xml version="1.0"?><propfind xmlns="DAV:"><prop><resourcetype/><getetag/><getlastmodified/>'
    b"<getcontentlength/></prop></propfind>"
)


class WebDavOptions(Options, Account):
    url = AddressField(
        label=_("Folder"), help_text=_("Such as https://cloud.example.org/remote.php/dav/files/NAME/Handbook/.")
    )
    field_order = ["url", "username", "password"]


class WebDavConnector(HttpConnector):
    def _read_address(self) -> str:
        return super()._read_address().rstrip("/") + "/"

    def list_items(self) -> Iterator[RemoteItem]:
        root, seen = _path(self._address), set[str]()
        waiting = deque([self._address])
        while waiting:
            folder = waiting.popleft()
            if _path(folder) in seen:
                continue
            seen.add(_path(folder))
            response = self._client.request("PROPFIND", folder, headers=_ONE_LEVEL, content=_WANTED)
            check_listing(response)
            try:
                entries = children(parse_xml(response.body), "response")
            except ValueError as error:
                raise SourceUnavailable(_t("%s does not answer as a WebDAV server does.") % folder) from error
            for entry in entries:
                url = join(folder, text_of(entry, "href"))
                path = _path(url)
                if not path.startswith(root) or path == _path(folder):
                    continue
                if children(entry, "collection"):
                    waiting.append(url.rstrip("/") + "/")
                    continue
                parts = (text_of(entry, name) for name in ("getetag", "getlastmodified", "getcontentlength"))
                name = path.removeprefix(root)
                yield RemoteItem(name, name, " ".join(parts).strip(), url=url)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> Fetched | Unchanged:
        response = self._client.get(item.url, headers=validators)
        check_item(response, item.name)
        if response.is_unchanged:
            return UNCHANGED
        return Fetched(response.body, media_type=response.media_type, validators=response.validators)


def _path(url: str) -> str:
    return unquote(urlsplit(url).path)


KIND = SourceKind(
    name="webdav",
    label=_("WebDAV"),
    description=_("A folder of Nextcloud, ownCloud or another WebDAV server."),
    options=WebDavOptions,
    connector=WebDavConnector,
)
