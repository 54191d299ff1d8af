"""Read pages of MediaWiki over its API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.network import Client, HttpConnector, check_listing_response, check_page_is_new
from retrieval.sources.options import SourceAccountForm, SourceOptionsForm, WebAddressField
from retrieval.sources.protocol import (
    FetchedItem,
    ItemFailed,
    ItemGone,
    RemoteItem,
    SourceUnavailable,
    SourceUnreadable,
)


class WikiConnector(HttpConnector):
    def _read_address(self) -> str:
        return super()._read_address().rstrip("/")

    def _ask_json_object(
        self, url: str, query: Mapping[str, str] | None = None, *, posted: Mapping[str, str] | None = None
    ) -> Any:
        answer = self._ask_json(url, query, posted=posted)
        if not isinstance(answer, dict):
            raise SourceUnavailable(_t("%s answers in a form that is not understood.") % url)
        return answer

    def _ask_json(
        self, url: str, query: Mapping[str, str] | None = None, *, posted: Mapping[str, str] | None = None
    ) -> Any:
        address = f"{url}?{urlencode(query)}" if query else url
        if posted is None:
            response = self._client.get(address)
        else:
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            response = self._client.request("POST", address, headers=headers, content=urlencode(posted).encode())
        check_listing_response(response)
        try:
            return json.loads(response.body)
        except ValueError as error:
            raise SourceUnavailable(_t("%s does not answer in JSON.") % url) from error


def build_page(title: str, body: str) -> FetchedItem:
    page = (
        f'<html><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    return FetchedItem(page.encode())


_JSON = {"format": "json", "formatversion": "2"}
_NOT_THERE = ("missingtitle", "nosuchpageid", "pagecannotexist")


class MediaWikiOptions(SourceOptionsForm, SourceAccountForm):
    url = WebAddressField(
        label=_("API"), help_text=_("The address of api.php, such as https://wiki.example.org/w/api.php.")
    )
    namespace = forms.IntegerField(
        label=_("Namespace"),
        min_value=0,
        max_value=10_000,
        initial=0,
        help_text=_("The number of the namespace; articles are in 0."),
    )


class MediaWikiConnector(WikiConnector):
    name = "mediawiki"
    label = _("MediaWiki")
    description = _("Pages of a namespace. Only pages with a new revision are read again.")
    form = MediaWikiOptions

    def list_items(self) -> Iterator[RemoteItem]:
        if self.options.get("username"):
            self._sign_in()
        query = {
            **_JSON,
            "action": "query",
            "generator": "allpages",
            "gapnamespace": str(self.options.get("namespace") or 0),
            "gapfilterredir": "nonredirects",
            "gaplimit": "max",
            "prop": "info",
            "inprop": "url",
        }
        following: dict[str, str] = {}
        seen = set[str]()
        while True:
            answer = self._ask_json_object(self._address, {**query, **following})
            if error := answer.get("error"):
                raise SourceUnreadable(_t("The wiki says: %s") % error.get("info", error.get("code", "")))
            for page in answer.get("query", {}).get("pages", []):
                title = str(page["title"])
                url = str(page.get("fullurl", ""))
                yield RemoteItem(str(page["pageid"]), f"{title}.html", str(page["lastrevid"]), url=url, title=title)
            following = {name: str(value) for name, value in answer.get("continue", {}).items()}
            if not following:
                return
            check_page_is_new(seen, [str(page["pageid"]) for page in answer.get("query", {}).get("pages", [])])

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem:
        query = {**_JSON, "action": "parse", "pageid": item.key, "prop": "text", "disableeditsection": "1"}
        answer = self._ask_json_object(self._address, query)
        if error := answer.get("error"):
            if error.get("code") in _NOT_THERE:
                raise ItemGone(item.name)
            raise ItemFailed(f"{item.name}: {error.get('info', '')}")
        return build_page(item.title, str(answer["parse"]["text"]))

    def _open_client(self) -> Client:
        return Client(self._address)

    def _sign_in(self) -> None:
        asked = self._ask_json_object(self._address, {**_JSON, "action": "query", "meta": "tokens", "type": "login"})
        account = {"lgname": self.options["username"], "lgpassword": self.options.get("password", "")}
        token = asked["query"]["tokens"]["logintoken"]
        answer = self._ask_json_object(self._address, posted={**_JSON, "action": "login", **account, "lgtoken": token})
        if answer.get("login", {}).get("result") != "Success":
            raise SourceUnreadable(_t("The wiki refused the user name or the password."))
