"""List who may read a collection, a document or an answer. Names are shown only to viewers who may see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.conversations.answer_audience import find_answer_readers
from chat.conversations.rights import is_withheld, may_read_all_answers
from chat.models import Answer
from core.key_limits import set_limits
from core.user_types import AnyUser
from ragsite.models import ApiKey
from retrieval.models import Collection, Document
from retrieval.rights.audience import (
    PermittedReaders,
    ReaderKind,
    list_accounts,
    list_collection_readers,
    list_document_readers,
)

MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class ReaderRow:
    who: str
    rule: str
    number: str = ""


@dataclass(frozen=True, slots=True)
class ReaderList:
    """Groups and accounts with the right to read, at most MOST_SHOWN. ``more`` is the number of further ones."""

    rows: Sequence[ReaderRow]
    more: int = 0
    remark: str = ""


def may_list_accounts(viewer: AnyUser) -> bool:
    return viewer.has_perm("auth.view_user")


def suggest_accounts(viewer: AnyUser, part: str = "") -> list[str]:
    if not may_list_accounts(viewer):
        return []
    named = User.objects.filter(Q(username__icontains=part) | Q(email__icontains=part), is_active=True)
    return list(named.order_by("username").values_list("username", flat=True)[:MOST_SHOWN])


def build_reader_list(viewer: AnyUser, subject: Collection | Document | Answer) -> ReaderList:
    if isinstance(subject, Answer):
        return _list_answer_readers(viewer, subject)
    collection = subject.collection if isinstance(subject, Document) else subject
    found = list_document_readers(subject) if isinstance(subject, Document) else list_collection_readers(collection)
    knows_grants = _manages(viewer, collection)
    wide = [_build_reader_row(each) for each in found if each.kind not in (ReaderKind.GROUP, ReaderKind.ACCOUNT)]
    groups = [each for each in found if each.kind is ReaderKind.GROUP]
    accounts = [each for each in found if each.kind is ReaderKind.ACCOUNT]
    named: list[ReaderRow] = []
    hidden: list[ReaderRow] = []
    if knows_grants or viewer.has_perm("auth.view_group"):
        named += map(_build_reader_row, groups)
    else:
        named += [_build_reader_row(each) for each in groups if not each.is_granted]
        hidden += _build_rows(_("Members of groups"), [each for each in groups if each.is_granted])
    if knows_grants or may_list_accounts(viewer):
        named += map(_build_reader_row, accounts)
    else:
        hidden += _build_rows(_("Single accounts"), accounts)
    remark = ""
    if settings.CHAT_REQUIRES_LOGIN:
        remark = _("Visitors have to sign in before they ask anything: CHAT_REQUIRES_LOGIN is set.")
    keys = _list_api_key_rows(viewer, _list_usable_api_keys(list_accounts(found), collection))
    shown = [*wide[:-1], *named[:MOST_SHOWN], *hidden, wide[-1], *keys]
    return ReaderList(shown, max(0, len(named) - MOST_SHOWN), remark)


def _manages(viewer: AnyUser, collection: Collection) -> bool:
    managed = Collection.objects.filter(pk=collection.pk)
    if viewer.has_perm("retrieval.change_collection"):
        return managed.managed_by(viewer).exists()
    return managed.granted_to(viewer, "manager").exists()


def _build_reader_row(readers: PermittedReaders) -> ReaderRow:
    if readers.kind is ReaderKind.VISITORS:
        return ReaderRow(_("Visitors without an account"), readers.rule)
    if readers.kind is ReaderKind.ACCOUNT:
        accounts = list_accounts([readers])
        return ReaderRow(readers.name, readers.rule, "" if accounts.exists() else _("switched off"))
    number = list_accounts([readers]).count()
    if readers.kind is ReaderKind.GROUP:
        # The metadata of a document may name a group that the site does not have.
        is_missing = not number and not Group.objects.filter(name=readers.name).exists()
        members = _("does not exist") if is_missing else ngettext("%d member", "%d members", number) % number
        return ReaderRow(_("The group %s") % readers.name, readers.rule, members)
    labels = {
        ReaderKind.SIGNED_IN: _("Everybody who has signed in"),
        ReaderKind.STAFF: _("Staff"),
        ReaderKind.SUPERUSERS: _("Superusers"),
    }
    return ReaderRow(labels[readers.kind], readers.rule, _format_account_count(number))


def _format_account_count(number: int) -> str:
    return ngettext("%d account", "%d accounts", number) % number


def _build_rows(who: str, readers: Sequence[PermittedReaders]) -> list[ReaderRow]:
    if not readers:
        return []
    rule = _("They have a grant. Only managers of the collection and administrators of accounts see the names.")
    return [ReaderRow(who, rule, _format_account_count(list_accounts(readers).count()))]


def _list_usable_api_keys(accounts: QuerySet[User], collection: Collection) -> QuerySet[ApiKey]:
    usable = ApiKey.objects.usable().filter(user__in=accounts.values("pk"))
    allowed = ApiKey.objects.filter(collections=collection).order_by().values("pk")
    return usable.filter(Q(is_limited=False) | Q(pk__in=allowed))


def _list_api_key_rows(viewer: AnyUser, keys: QuerySet[ApiKey]) -> Iterable[ReaderRow]:
    number = keys.count()
    if not number:
        return []
    rule = _("A key reads what its account may read, within the collections of the key.")
    if viewer.has_perm("ragsite.view_apikey"):
        shown = [str(key) for key in keys[:MOST_SHOWN]]
        more = [_("and %d more") % (number - len(shown))] if number > len(shown) else []
        rule = f"{rule} {', '.join([*shown, *more])}"
    return [ReaderRow(_("API keys"), rule, ngettext("%d key", "%d keys", number) % number)]


def _list_answer_readers(viewer: AnyUser, answer: Answer) -> ReaderList:
    found = find_answer_readers(answer)
    rows: list[ReaderRow] = []
    asked = _("The account asked it, and may read all documents that it uses.")
    if found.owner is not None:
        # Staff who may view conversations can see in the admin who asked.
        knows_asker = viewer.has_perm("chat.view_conversation") or may_list_accounts(viewer)
        rows.append(ReaderRow(str(found.owner) if knows_asker else _("The account that asked"), asked))
    if found.is_own:
        rows.append(ReaderRow(_("The visitor who asked, in the same browser"), _("The visitor asked it.")))
    if found.link:
        rows.append(
            ReaderRow(
                found.link,
                _("The conversation is shared. Whoever may not read a document that the answer uses does not see it."),
            )
        )
    if found.staff:
        rule = _("The account may view the answers of others, and read all documents that this one uses.")
        number = _format_account_count(len(found.staff))
        if may_list_accounts(viewer):
            rows += [ReaderRow(str(user), rule) for user in found.staff]
        else:
            rows.append(ReaderRow(_("Staff"), rule, number))
    accounts = [user.pk for user in [found.owner, *found.staff] if user is not None]
    of_accounts = ApiKey.objects.usable().filter(user__in=accounts).select_related("user")
    keys = [key.pk for key in of_accounts if _may_read(key, answer)]
    return ReaderList([*rows, *_list_api_key_rows(viewer, ApiKey.objects.filter(pk__in=keys))], found.unchecked)


def _may_read(key: ApiKey, answer: Answer) -> bool:
    set_limits(key.user, key.limits())
    is_open = key.user_id == answer.conversation.owner_id or may_read_all_answers(key.user)
    return is_open and not is_withheld(key.user, answer)
