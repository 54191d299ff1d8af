"""List who may read a collection or a document. `reasons` explains the same rules for one account."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import or_

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from retrieval.models import Collection, CollectionGrant, Document, Draft, Visibility
from retrieval.models.collection import CURATING
from retrieval.models.narrowing import MAIL
from retrieval.rights.reasons import explain_source_readers

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


class ReaderKind(StrEnum):
    VISITORS = "visitors"
    SIGNED_IN = "signed_in"
    STAFF = "staff"
    GROUP = "group"
    ACCOUNT = "account"
    SUPERUSERS = "superusers"


@dataclass(frozen=True, slots=True)
class PermittedReaders:
    """Accounts that may read a collection or document, with the rule that allows it.

    ``accounts`` also matches inactive accounts. ``name`` is the name of a group or an account. ``is_granted``: an
    administrator granted the collection to this group or account.
    """

    kind: ReaderKind
    rule: str
    accounts: Q
    name: str = ""
    is_granted: bool = False


def list_accounts(readers: Iterable[PermittedReaders]) -> QuerySet[User]:
    anyone = reduce(or_, (each.accounts for each in readers), Q(pk__in=[]))
    return User.objects.filter(anyone, is_active=True)


def list_collection_readers(collection: Collection) -> list[PermittedReaders]:
    """Return who may ask questions to the collection, one entry per rule. An account may be in several entries."""
    found: list[PermittedReaders] = []
    draft = Draft.objects.filter(working_copy=collection).select_related("collection").first()
    if draft is not None:
        rule = _("It is the working copy of a draft. Only accounts that may change the documents of %s see it.")
        if draft.collection.visibility != Visibility.GRANTED:
            found.append(PermittedReaders(ReaderKind.STAFF, rule % draft.collection, Q(is_staff=True)))
        found += _list_readers_by_grant(draft.collection, *CURATING)
    else:
        found += _list_readers_by_visibility(collection)
        found += _list_readers_by_grant(collection, *CollectionGrant.Role)
    return [*found, _list_superusers()]


def list_document_readers(document: Document) -> list[PermittedReaders]:
    asking = list_collection_readers(document.collection)
    key = settings.DOCUMENT_GROUPS_KEY
    if key not in document.metadata:
        return asking
    named = document.metadata[key]
    names = [name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)]
    may_ask = list_accounts(asking).values("pk")
    of_source = explain_source_readers(document)
    found = [
        PermittedReaders(
            ReaderKind.GROUP,
            _join_sentences(
                _("Its metadata limit it to groups. Counted are the members that may ask %s.") % document.collection,
                of_source,
            ),
            Q(pk__in=_list_members(Q(name=name))) & Q(pk__in=may_ask),
            name,
        )
        for name in dict.fromkeys(names)
        if not name.startswith(MAIL)
    ]
    for address in sorted({name.removeprefix(MAIL) for name in names if name.startswith(MAIL)}):
        owners = EmailAddress.objects.filter(email__iexact=address, verified=True).values("user")
        rule = _join_sentences(_("It is limited to some readers, and the account is named by its address."), of_source)
        found.append(PermittedReaders(ReaderKind.ACCOUNT, rule, Q(pk__in=owners) & Q(pk__in=may_ask), address))
    return [*found, *_list_curators(document.collection), _list_superusers()]


def _join_sentences(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _list_readers_by_visibility(collection: Collection) -> Iterator[PermittedReaders]:
    # In a disjunction, an empty Q would be ignored.
    anybody = Q(pk__isnull=False)
    rules: dict[str, tuple[ReaderKind, Callable[[], str], Q]] = {
        Visibility.PUBLIC: (ReaderKind.SIGNED_IN, lambda: _("%s is open to everybody."), anybody),
        Visibility.SIGNED_IN: (
            ReaderKind.SIGNED_IN,
            lambda: _("%s is open to everybody who has signed in."),
            anybody,
        ),
        Visibility.STAFF: (ReaderKind.STAFF, lambda: _("%s is open to staff."), Q(is_staff=True)),
    }
    if collection.visibility not in rules:
        return
    kind, say, accounts = rules[collection.visibility]
    rule = say() % collection
    if collection.visibility == Visibility.PUBLIC and not settings.CHAT_REQUIRES_LOGIN:
        yield PermittedReaders(ReaderKind.VISITORS, rule, Q(pk__in=[]))
    yield PermittedReaders(kind, rule, accounts)


def _list_readers_by_grant(collection: Collection, *roles: str) -> Iterator[PermittedReaders]:
    granted = CollectionGrant.objects.filter(collection=collection, role__in=roles).select_related("group", "user")
    for grant in granted:
        names = {"role": grant.get_role_display(), "collection": collection}
        rule = _("A grant in %(collection)s: %(role)s.") % names
        if grant.group is not None:
            members = Q(pk__in=_list_members(Q(pk=grant.group.pk)))
            yield PermittedReaders(ReaderKind.GROUP, rule, members, str(grant.group), is_granted=True)
        else:
            yield PermittedReaders(ReaderKind.ACCOUNT, rule, Q(pk=grant.user_id), str(grant.user), is_granted=True)


def _list_curators(collection: Collection) -> Iterator[PermittedReaders]:
    draft = Draft.objects.filter(working_copy=collection).select_related("collection").first()
    base = collection if draft is None else draft.collection
    if base.visibility != Visibility.GRANTED:
        rule = _("Its metadata limit it to groups, but the account may change the documents of %s.") % collection
        allowed = User.objects.with_perm("retrieval.change_document", backend=MODEL_BACKEND, include_superusers=False)
        yield PermittedReaders(ReaderKind.STAFF, rule, Q(is_staff=True, pk__in=allowed.values("pk")))
    yield from _list_readers_by_grant(base, *CURATING)


def _list_superusers() -> PermittedReaders:
    return PermittedReaders(ReaderKind.SUPERUSERS, _("Superusers read everything."), Q(is_superuser=True))


def _list_members(groups: Q) -> QuerySet[User, int]:
    return User.objects.filter(groups__in=Group.objects.filter(groups)).order_by().values_list("pk", flat=True)
