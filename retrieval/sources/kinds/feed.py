"""Read the entries of an RSS or Atom feed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from django import forms
from django.utils.text import slugify
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.documents.extraction.decoding import decode
from retrieval.exceptions import DocumentRejected
from retrieval.sources.kinds.wikis import build_page
from retrieval.sources.network import HttpConnector, check_listing_response, join_address
from retrieval.sources.options import SourceAccountForm, SourceOptionsForm, WebAddressField
from retrieval.sources.protocol import (
    FetchedItem,
    ItemGone,
    RemoteItem,
    SourceUnreadable,
)
from retrieval.text.encodings import find_python_codec, find_xml_label


class FeedOptions(SourceOptionsForm, SourceAccountForm):
    url = WebAddressField(label=_("Feed"))
    content = forms.ChoiceField(
        label=_("What is read"),
        choices=[("page", _("the page that an entry links to")), ("entry", _("the text in the feed itself"))],
        initial="page",
    )


class FeedConnector(HttpConnector):
    name = "feed"
    label = _("RSS or Atom feed")
    description = _("Entries of a feed. Entries that are no longer in it are kept.")
    form = FeedOptions

    # A feed lists only its newest entries, so a missing entry is not deleted.
    lists_everything = False

    _entries: dict[str, FetchedItem]

    def list_items(self) -> Iterator[RemoteItem]:
        import feedparser

        self._entries = {}
        response = self._client.get(self.options["url"])
        check_listing_response(response)
        no_feed = SourceUnreadable(_t("%s is not an RSS or Atom feed.") % self.options["url"])
        label = response.charset if find_python_codec(response.charset) else find_xml_label(response.body)
        try:
            text = decode(response.body, self.name, label=label)
        except DocumentRejected as error:
            raise no_feed from error
        # feedparser would use any Python codec that the feed names.
        feed = feedparser.parse(text.encode(), response_headers={"content-type": "application/xml; charset=utf-8"})
        if not feed.get("version"):
            raise no_feed
        for entry in feed.entries:
            link = join_address(response.url, entry.get("link") or "") if entry.get("link") else ""
            key = entry.get("id") or link
            if not key:
                continue
            title = str(entry.get("title") or key)
            parts = [each.get("value", "") for each in entry.get("content", [])] or [entry.get("summary", "")]
            self._entries[key] = build_page(title, "\n".join(parts))
            told = f"{entry.get('updated', '')}\n{entry.get('published', '')}\n{link}\n{title}\n{parts}"
            fingerprint = hashlib.sha256(told.encode()).hexdigest()
            yield RemoteItem(key, f"{slugify(title)[:100] or 'entry'}.html", fingerprint, url=link, title=title)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem | None:
        if self.options.get("content") == "entry" or not item.url:
            return self._entries[item.key]
        try:
            return super().fetch(item, validators)
        except ItemGone:
            # The page is gone, but the feed still has the text of the entry.
            return self._entries[item.key]
