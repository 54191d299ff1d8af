"""Explain why an account may or may not read a collection or a document."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext as _

from core.user_types import AnyUser
from core.users import is_active, is_superuser, list_groups
from retrieval.models import Collection, CollectionGrant, Document, Draft, PushedItem, SourceItem, Visibility
from retrieval.models.narrowing import MAIL, build_reader_rights
from retrieval.models.source import EVERYBODY


@dataclass(frozen=True, slots=True)
class AccessReason:
    """The reason why a user sees a document or collection, or does not see it.

    ``rule`` is the right that decides. ``remark`` is an obstacle apart from rights, for example that searches do not
    find the document yet; or it is empty.
    """

    is_seen: bool
    rule: str
    remark: str = ""


def explain_collection_access(user: AnyUser, collection: Collection) -> AccessReason:
    is_seen = Collection.objects.readable_by(user).filter(pk=collection.pk).exists()
    remark = ""
    if settings.CHAT_REQUIRES_LOGIN and not getattr(user, "is_authenticated", False):
        remark = _("Visitors have to sign in before they ask anything: CHAT_REQUIRES_LOGIN is set.")
    return AccessReason(is_seen, _describe_access_rule(user, collection), remark)


def _describe_access_rule(user: AnyUser, collection: Collection) -> str:
    if is_superuser(user):
        return _("Superusers read everything.")
    if (draft := Draft.objects.filter(working_copy=collection).select_related("collection").first()) is not None:
        return (
            _("It is the working copy of a draft. Only accounts that may change the documents of %s see it.")
            % draft.collection
        )
    if collection.visibility == Visibility.PUBLIC:
        return _("%s is open to everybody.") % collection
    if (grant := _find_grant(user, collection)) is not None:
        names = {"holder": grant.group or grant.user, "role": grant.get_role_display(), "collection": collection}
        if grant.group:
            return _("The group %(holder)s has a grant in %(collection)s: %(role)s.") % names
        return _("%(holder)s has a grant in %(collection)s: %(role)s.") % names
    if getattr(user, "is_authenticated", False) and not user.is_active:
        return (
            _("The account is switched off: it sees what visitors see, and %s is not open to everybody.") % collection
        )
    if collection.visibility == Visibility.SIGNED_IN:
        return _("%s is open to everybody who has signed in.") % collection
    if collection.visibility == Visibility.STAFF:
        return _("%s is open to staff.") % collection
    return _("%s is open only to accounts with a grant. This account and its groups have none.") % collection


def _find_grant(user: AnyUser, collection: Collection) -> CollectionGrant | None:
    if not is_active(user):
        return None
    held = CollectionGrant.objects.filter(Q(user=user.pk) | Q(group__in=list_groups(user)), collection=collection)
    return held.select_related("group", "user").first()


def explain_document_access(user: AnyUser, document: Document) -> AccessReason:
    found = explain_collection_access(user, document.collection)
    is_seen = Document.objects.readable_by(user).filter(pk=document.pk).exists()
    remark = found.remark
    if document.status != Document.Status.READY and not document.chunk_count:
        remark = _("Searches do not find it yet: it is %s.") % document.get_status_display()
    key = settings.DOCUMENT_GROUPS_KEY
    if not found.is_seen or is_superuser(user) or key not in document.metadata:
        return AccessReason(is_seen, found.rule, remark)
    named = document.metadata[key]
    listed = named if isinstance(named, list) else [named]
    names = [name for name in listed if isinstance(name, str)]
    [reader] = build_reader_rights(user)
    if document.collection_id in reader.collections:
        rule = (
            _("Its metadata limit it to groups, but the account may change the documents of %s.") % document.collection
        )
    elif not names:
        rule = _("It is hidden, because “%(value)s” under %(key)s in its metadata is not the name of a group.") % {
            "value": named,
            "key": key,
        }
    elif own := sorted(set(names) & set(reader.groups)):
        groups = [name for name in own if not name.startswith(MAIL)]
        rule = _("Its metadata limit it to groups, and the account is in %s.") % ", ".join(groups)
        if not groups:
            rule = _("It is limited to some readers, and the account is named by its address.")
    else:
        rule = _("Its metadata limit it to the groups %s, and the account is in none of them.") % ", ".join(
            name.removeprefix(MAIL) for name in names
        )
    return AccessReason(is_seen, f"{rule} {explain_source_readers(document)}".rstrip(), remark)


_MOST_NAMED = 20


def explain_source_readers(document: Document) -> str:
    """Return a sentence on the readers that the source sets for a document; empty if it sets none."""
    key = settings.DOCUMENT_GROUPS_KEY
    top = document
    while top.parent is not None:
        top = top.parent
    if top.origin is None or key not in document.metadata:
        return ""
    items = (PushedItem if top.origin.is_pushed else SourceItem)._default_manager
    said = items.filter(source=top.origin, name=top.source, readers__isnull=False).values_list("readers", flat=True)
    readers = said.first()
    if readers is None:
        return ""
    if readers == EVERYBODY:
        return _("The source %s names everybody.") % top.origin
    named = document.metadata[key]
    kept = {name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)}
    names = [str(name).removeprefix(MAIL) for name in readers if name in kept]
    if not names:
        return _("The source %s names nobody who may read it here.") % top.origin
    more = " …" if len(names) > _MOST_NAMED else ""
    return _("The source %(source)s names %(names)s.") % {
        "source": top.origin,
        "names": ", ".join(names[:_MOST_NAMED]) + more,
    }
