"""Pages of a Confluence space, over its REST interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django import forms
from django.utils.translation import gettext_lazy as _

from retrieval.sources.kinds.wiki import WikiConnector, as_page
from retrieval.sources.network.http import Client, check_progress
from retrieval.sources.options import Account, AddressField, Options
from retrieval.sources.protocol import Fetched, ItemGone, RemoteItem, SourceKind


class ConfluenceOptions(Options, Account):
    url = AddressField(
        label=_("Confluence"), help_text=_("Such as https://NAME.atlassian.net/wiki or https://wiki.example.org.")
    )
    space = forms.RegexField(r"^~?[\w-]{1,255}$", label=_("Key of the space"))
    field_order = ["url", "space", "username", "password"]


class ConfluenceConnector(WikiConnector):
    """Asks by CQL alone, which Cloud, Data Center and Server answer alike."""

    def list_items(self) -> Iterator[RemoteItem]:
        cql = f'space="{self.options["space"]}" and type=page order by id'
        answer = self._ask(self._search, {"cql": cql, "expand": "version", "limit": "100"})
        seen = set[str]()
        while True:
            for page in answer.get("results", []):
                title, links = str(page["title"]), page.get("_links", {})
                url = self._address + links["webui"] if links.get("webui") else ""
                version = str(page["version"]["number"])
                yield RemoteItem(str(page["id"]), f"{title}.html", version, url=url, title=title)
            following = answer.get("_links", {}).get("next")
            if not following:
                return
            check_progress(seen, [str(page["id"]) for page in answer.get("results", [])])
            answer = self._ask(self._address + str(following))

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> Fetched:
        answer = self._ask(self._search, {"cql": f"id={item.key}", "expand": "body.export_view"})
        if not answer.get("results"):
            raise ItemGone(item.name)
        return as_page(item.title, str(answer["results"][0]["body"]["export_view"]["value"]))

    @property
    def _search(self) -> str:
        return f"{self._address}/rest/api/content/search"

    def _open(self) -> Client:
        """With a name and a password, or a personal access token alone."""
        password = self.options.get("password", "")
        if password and not self.options.get("username"):
            return Client(self._address, headers={"Authorization": f"Bearer {password}"})
        return super()._open()


KIND = SourceKind(
    name="confluence",
    label=_("Confluence"),
    description=_("Pages of a space, in the cloud or on a server of your own; those with a new version are read."),
    options=ConfluenceOptions,
    connector=ConfluenceConnector,
)
