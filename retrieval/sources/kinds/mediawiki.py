"""Pages of a MediaWiki, over its action API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django import forms
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.kinds.wiki import WikiConnector, as_page
from retrieval.sources.network.http import Client, check_progress
from retrieval.sources.options import Account, AddressField, Options
from retrieval.sources.protocol import Fetched, ItemFailed, ItemGone, RemoteItem, SourceKind, SourceRefused

_JSON = {"format": "json", "formatversion": "2"}
_NOT_THERE = ("missingtitle", "nosuchpageid", "pagecannotexist")


class MediaWikiOptions(Options, Account):
    url = AddressField(
        label=_("API"), help_text=_("The address of api.php, such as https://wiki.example.org/w/api.php.")
    )
    namespace = forms.IntegerField(
        label=_("Namespace"),
        min_value=0,
        max_value=10_000,
        initial=0,
        help_text=_("Its number; articles have 0."),
    )
    field_order = ["url", "namespace", "username", "password"]


class MediaWikiConnector(WikiConnector):
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
            answer = self._ask(self._address, {**query, **following})
            if error := answer.get("error"):
                raise SourceRefused(_t("The wiki says: %s") % error.get("info", error.get("code", "")))
            for page in answer.get("query", {}).get("pages", []):
                title = str(page["title"])
                url = str(page.get("fullurl", ""))
                yield RemoteItem(str(page["pageid"]), f"{title}.html", str(page["lastrevid"]), url=url, title=title)
            following = {name: str(value) for name, value in answer.get("continue", {}).items()}
            if not following:
                return
            check_progress(seen, [str(page["pageid"]) for page in answer.get("query", {}).get("pages", [])])

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> Fetched:
        query = {**_JSON, "action": "parse", "pageid": item.key, "prop": "text", "disableeditsection": "1"}
        answer = self._ask(self._address, query)
        if error := answer.get("error"):
            if error.get("code") in _NOT_THERE:
                raise ItemGone(item.name)
            raise ItemFailed(f"{item.name}: {error.get('info', '')}")
        return as_page(item.title, str(answer["parse"]["text"]))

    def _open(self) -> Client:
        return Client(self._address)

    def _sign_in(self) -> None:
        """With a bot password, as the wiki's page Special:BotPasswords gives them. Raises: SourceRefused."""
        asked = self._ask(self._address, {**_JSON, "action": "query", "meta": "tokens", "type": "login"})
        account = {"lgname": self.options["username"], "lgpassword": self.options.get("password", "")}
        token = asked["query"]["tokens"]["logintoken"]
        answer = self._ask(self._address, posted={**_JSON, "action": "login", **account, "lgtoken": token})
        if answer.get("login", {}).get("result") != "Success":
            raise SourceRefused(_t("The wiki refused the user name or the password."))


KIND = SourceKind(
    name="mediawiki",
    label=_("MediaWiki"),
    description=_("Pages of a namespace; those whose revision is new are read."),
    options=MediaWikiOptions,
    connector=MediaWikiConnector,
)
