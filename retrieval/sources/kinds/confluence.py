"""Read pages of Confluence, and who may read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from django import forms
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.exceptions import RagsiteError
from retrieval.sources.kinds.wikis import WikiConnector, build_page
from retrieval.sources.network import Client, check_page_is_new
from retrieval.sources.options import SourceAccountForm, SourceOptionsForm, WebAddressField
from retrieval.sources.protocol import (
    FetchedItem,
    ItemGone,
    ItemReaders,
    RemoteItem,
    SourceUnavailable,
    SourceUnreadable,
)
from retrieval.sources.reader_names import ReadersBySourceForm

_LIMITS = "restrictions.read.restrictions"
_EXPANDED = "version," + ",".join(
    f"{place}{_LIMITS}.{kind}" for place in ("", "ancestors.") for kind in ("user", "group")
)
_MEMBERS_A_PAGE = 200
_MOST_MEMBERS = 10_000


class ConfluenceOptions(ReadersBySourceForm, SourceOptionsForm, SourceAccountForm):
    url = WebAddressField(
        label=_("Confluence"), help_text=_("Such as https://NAME.atlassian.net/wiki or https://wiki.example.org.")
    )
    space = forms.RegexField(r"^~?[\w-]{1,255}$", label=_("Key of the space"))


class _RightsUnreadable(RagsiteError):
    """An error: a response does not say who may read a page or space. The message is for the admin."""


@dataclass(frozen=True, slots=True)
class _PermittedReaders:
    """Who may read a page or space: groups, users (by their id), or everybody."""

    groups: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    is_everybody: bool = False


@dataclass(slots=True)
class _RightsCache:
    """A run's cache of the space's readers, the members of groups, and the names of accounts."""

    space: _PermittedReaders = field(default_factory=_PermittedReaders)
    unread: str = ""
    members: dict[str, frozenset[str]] = field(default_factory=dict)
    unread_groups: list[str] = field(default_factory=list)
    group_ids: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def read_users_and_groups(self, subjects: Mapping[str, Any]) -> _PermittedReaders:
        """Return the users and groups in a response. Raises: _RightsUnreadable if the list of either is missing."""
        try:
            users, groups = subjects["user"]["results"], subjects["group"]["results"]
            return _PermittedReaders(
                frozenset(map(self.store_group_id, groups)), frozenset(map(self.store_user_name, users))
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise _RightsUnreadable(_t("the answer does not name accounts and groups")) from error

    def store_group_id(self, group: Mapping[str, Any]) -> str:
        name = str(group["name"])
        if group.get("id"):
            self.group_ids[name] = str(group["id"])
        return name

    def store_user_name(self, user: Mapping[str, Any]) -> str:
        identity = str(user.get("accountId") or user.get("username") or user["userKey"])
        self.names[identity] = str(user.get("email") or user.get("username") or identity)
        return identity

    def read_space_readers(self, permissions: Iterable[Mapping[str, Any]]) -> _PermittedReaders:
        """Return who may see the space. Confluence Cloud and Server list permissions in different forms."""
        found = _PermittedReaders()
        try:
            for each in permissions:
                operation = each["operation"]
                name = operation.get("operation") or operation.get("operationKey")
                if name == "read" and operation["targetType"] == "space":
                    granted = self._read_grant(each)
                    found = _PermittedReaders(
                        found.groups | granted.groups,
                        found.users | granted.users,
                        found.is_everybody or granted.is_everybody,
                    )
        except (KeyError, TypeError, AttributeError) as error:
            raise _RightsUnreadable(_t("the permissions of the space are in a form that is not understood")) from error
        if found == _PermittedReaders():
            # At least the source's account may see the space, so an empty answer is incomplete.
            raise _RightsUnreadable(_t("the answer does not name who may see the space"))
        return found

    def _read_grant(self, grant: Mapping[str, Any]) -> _PermittedReaders:
        if grant.get("anonymousAccess"):
            return _PermittedReaders(is_everybody=True)
        if (subject := grant.get("subject")) is not None:
            kind = subject.get("type")
            if kind == "anonymous":
                return _PermittedReaders(is_everybody=True)
            if kind == "group":
                return _PermittedReaders(groups=frozenset([self.store_group_id(subject)]))
            return _PermittedReaders(users=frozenset([self.store_user_name(subject)]))
        subjects = grant.get("subjects") or {}
        nobody: dict[str, Any] = {"results": []}
        return self.read_users_and_groups({kind: subjects.get(kind) or nobody for kind in ("user", "group")})

    def convert_to_item_readers(self, admitted: _PermittedReaders) -> ItemReaders:
        users = tuple(sorted(self.names[each] for each in admitted.users))
        return ItemReaders(tuple(sorted(admitted.groups)), users, admitted.is_everybody)


class ConfluenceConnector(WikiConnector):
    """Reads the pages of a Confluence space by CQL, which Cloud, Data Center and Server support."""

    name = "confluence"
    label = _("Confluence")
    description = _(
        "Pages of a space, in the cloud or on a server of your own. Only pages with a new version are read again."
    )
    form = ConfluenceOptions
    tells_readers = True

    def __init__(self, options: Mapping[str, Any], number: int) -> None:
        super().__init__(options, number)
        self._rights: _RightsCache | None = _RightsCache() if options.get("takes_readers") else None

    def list_items(self) -> Iterator[RemoteItem]:
        cql = f'space="{self.options["space"]}" and type=page order by id'
        query = {"cql": cql, "expand": "version", "limit": "100"}
        if self._rights is not None:
            self._read_space(self._rights)
        seen = set[str]()
        address = f"{self._search}?{urlencode(query)}"
        while True:
            answer, unread = self._ask_page(address)
            for page in answer.get("results", []):
                title, links = str(page["title"]), page.get("_links", {})
                url = self._address + links["webui"] if links.get("webui") else ""
                version = str(page["version"]["number"])
                readers = self._find_page_readers(self._rights, page, unread) if self._rights is not None else None
                yield RemoteItem(str(page["id"]), f"{title}.html", version, url=url, title=title, readers=readers)
            following = answer.get("_links", {}).get("next")
            if not following:
                return
            check_page_is_new(seen, [str(page["id"]) for page in answer.get("results", [])])
            address = self._address + str(following)

    def _ask_page(self, address: str) -> tuple[Any, str]:
        """Return a part of the list of wiki pages, and the error if their access restrictions cannot be read, or ""."""
        if self._rights is None or self._rights.unread:
            return self._ask_json_object(address), ""
        parts = urlsplit(address)
        query = [(name, value) for name, value in parse_qsl(parts.query) if name != "expand"]
        bare, full = (
            parts._replace(query=urlencode([*query, ("expand", each)])).geturl() for each in ("version", _EXPANDED)
        )
        try:
            return self._ask_json_object(full), ""
        except SourceUnreadable as error:
            return self._ask_json_object(bare), str(error)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem:
        answer = self._ask_json_object(self._search, {"cql": f"id={item.key}", "expand": "body.export_view"})
        if not answer.get("results"):
            raise ItemGone(item.name)
        return build_page(item.title, str(answer["results"][0]["body"]["export_view"]["value"]))

    @property
    def _search(self) -> str:
        return f"{self._address}/rest/api/content/search"

    def _open_client(self) -> Client:
        password = self.options.get("password", "")
        if password and not self.options.get("username"):
            return Client(self._address, headers={"Authorization": f"Bearer {password}"})
        return super()._open_client()

    def _read_space(self, rights: _RightsCache) -> None:
        address = f"{self._address}/rest/api/space/{self.options['space']}"
        try:
            permissions = self._ask_json_object(address, {"expand": "permissions"}).get("permissions")
            if not isinstance(permissions, list):
                permissions = self._ask_json(f"{address}/permissions")
            rights.space = rights.read_space_readers(permissions)
        except (SourceUnreadable, SourceUnavailable, _RightsUnreadable) as error:
            rights.unread = _explain(error)

    def _find_page_readers(self, rights: _RightsCache, page: Mapping[str, Any], unread: str) -> ItemReaders:
        admitted = rights.space
        try:
            if unread or rights.unread:
                raise _RightsUnreadable(rights.unread or unread)
            for place in (page, *_read_ancestors(page)):
                restrictions = _read_restrictions(place)
                # A page inherits the restrictions of its ancestors and its space.
                if _is_restricted(restrictions):
                    admitted = self._intersect_readers(rights, admitted, rights.read_users_and_groups(restrictions))
        except _RightsUnreadable as error:
            return ItemReaders(unread=str(error))
        return rights.convert_to_item_readers(admitted)

    def _intersect_readers(
        self, rights: _RightsCache, one: _PermittedReaders, other: _PermittedReaders
    ) -> _PermittedReaders:
        """Return the readers that both ``one`` and ``other`` admit."""
        if one.is_everybody:
            return other
        groups, named, found = one.groups & other.groups, one.users & other.users, frozenset[str]()
        for these, those in ((one, other), (other, one)):
            unnamed = these.groups - groups
            if not unnamed and not these.users - named:
                continue
            in_those = those.users.union(*(self._find_members(rights, each) for each in sorted(those.groups)))
            found |= these.users & in_those
            for group in sorted(unnamed):
                members = self._find_members(rights, group)
                if members and members <= in_those:
                    groups |= {group}
                else:
                    found |= members & in_those
        in_groups = frozenset[str]().union(*(rights.members.get(each, frozenset()) for each in groups))
        return _PermittedReaders(groups, named | (found - in_groups))

    def _find_members(self, rights: _RightsCache, group: str) -> frozenset[str]:
        """Return the members of the group; none if they cannot be read, so that no user gets too many rights."""
        if group not in rights.members:
            try:
                rights.members[group] = frozenset(map(rights.store_user_name, self._list_members(rights, group)))
            except (SourceUnreadable, SourceUnavailable, KeyError, TypeError) as error:
                _explain(error)
                rights.members[group] = frozenset()
                rights.unread_groups.append(group)
        return rights.members[group]

    def _list_members(self, rights: _RightsCache, group: str) -> Iterator[Mapping[str, Any]]:
        of_cloud = rights.group_ids.get(group)
        path = f"{quote(of_cloud, safe='')}/membersByGroupId" if of_cloud else f"{quote(group, safe='')}/member"
        for start in range(0, _MOST_MEMBERS, _MEMBERS_A_PAGE):
            query = {"start": str(start), "limit": str(_MEMBERS_A_PAGE)}
            answer = self._ask_json_object(f"{self._address}/rest/api/group/{path}", query)
            yield from answer["results"]
            if not answer.get("_links", {}).get("next"):
                return

    @property
    def notes_for_run_log(self) -> list[str]:
        unread = self._rights.unread_groups if self._rights is not None else []
        if not unread:
            return []
        return [
            _t("The members of these groups could not be read, so that fewer people may read some pages: %s.")
            % ", ".join(unread[:20])
        ]


def _explain(error: Exception) -> str:
    if isinstance(error, SourceUnavailable) and error.pause is not None:
        raise error
    return str(error)


def _read_ancestors(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    ancestors = page.get("ancestors")
    if not isinstance(ancestors, list):
        raise _RightsUnreadable(_t("the answer does not name the pages above"))
    return ancestors


def _is_restricted(restrictions: Mapping[str, Any]) -> bool:
    """Return whether the page has restrictions. Raises: _RightsUnreadable."""
    try:
        lists = [restrictions["user"], restrictions["group"]]
        return any(each["results"] or int(each.get("size") or each.get("totalSize") or 0) for each in lists)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _RightsUnreadable(_t("the answer does not name accounts and groups")) from error


def _read_restrictions(page: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        subjects: Mapping[str, Any] = page["restrictions"]["read"]["restrictions"]
    except (KeyError, TypeError) as error:
        raise _RightsUnreadable(_t("the answer does not name the restrictions of a page")) from error
    return subjects
