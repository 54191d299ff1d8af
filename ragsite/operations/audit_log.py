"""Write, export and delete entries of the audit log. An entry is written in the transaction of its change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NotRequired, TypedDict

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db import connection, transaction
from django.db.models import Model, QuerySet
from django.dispatch import receiver
from django.utils import timezone

from chat.models import Answer, Conversation, QuestionBudget
from core.api.callers import find_address
from core.audit_signal import happened
from core.user_types import AnyUser
from ragsite.models import ApiKey, AuditEntry, AuditPerson, Invitation
from ragsite.operations import logs
from retrieval.models import Collection, CollectionGrant
from retrieval.rights.staff import list_fully_readable_collections

_API = ("/api/", "/v1/")
# The label of such an object would contain a person's name or address, so it is not logged.
_OF_PERSON = CollectionGrant | Invitation | SocialAccount | Authenticator


def record_action(action: str, subject: Model | None = None, **details: object) -> AuditEntry:
    """Write an entry about ``subject``, the changed object, in the current transaction.

    Further arguments are stored as JSON. They must not contain text of documents, questions or answers.
    """
    return AuditEntry.objects.create(
        action=action,
        **_describe_action_origin(),
        object_type=subject._meta.label_lower if subject is not None else "",
        object_id=_get_id(subject),
        object_label=_get_label(subject),
        object_person=describe_person(_find_person(subject)),
        details=details,
    )


class ActionOriginFields(TypedDict):
    actor: NotRequired[AuditPerson | None]
    key: NotRequired[str]
    via: AuditEntry.Channel
    address: NotRequired[str]


class PersonPayload(TypedDict):
    user_id: int | None
    name: str


class ObjectPayload(TypedDict):
    """The object that an action changed. ``type`` is its model; ``person`` is the object itself, or its owner."""

    type: str
    id: str
    label: str
    person: PersonPayload | None


class EntryPayload(TypedDict):
    id: int
    at: str
    action: str
    actor: PersonPayload | None
    key: str | None
    via: str
    address: str | None
    object: ObjectPayload
    details: dict[str, object]


def _describe_action_origin() -> ActionOriginFields:
    context = logs.get_log_context()
    request = context.request
    if request is None:
        return {"via": AuditEntry.Channel.TASK if context.task else AuditEntry.Channel.COMMAND}
    user, key = getattr(request, "user", None), getattr(request, "auth", None)
    return {
        "actor": describe_person(user),
        "key": key.public_id if isinstance(key, ApiKey) else "",
        "via": AuditEntry.Channel.API if request.path.startswith(_API) else AuditEntry.Channel.PAGE,
        "address": find_address(request)[:60],
    }


def _get_id(subject: Model | None) -> str:
    return str(subject.pk) if subject is not None and subject.pk is not None else ""


def describe_person(user: AnyUser | None) -> AuditPerson | None:
    if user is None or not user.is_authenticated or user.pk is None:
        return None
    name = user.get_username()[:200]
    person, _is_new = AuditPerson.objects.get_or_create(user_id=user.pk, defaults={"name": name})
    if person.name != name:
        person.name = name
        person.save(update_fields=["name"])
    return person


def _get_label(subject: Model | None) -> str:
    if subject is None or isinstance(subject, AbstractBaseUser | Conversation | Answer | QuestionBudget | _OF_PERSON):
        return ""
    if subject.get_deferred_fields():
        # Django loads only some fields of an object to delete it, so its label would need a query.
        return ""
    if isinstance(subject, ApiKey):
        # The public id is shown, because an API key's name may contain its owner's name.
        return f"{subject.public_id}…"
    return str(subject)[:300]


def _find_person(subject: Model | None) -> Any:
    if isinstance(subject, AbstractBaseUser):
        return subject
    if isinstance(subject, Invitation):
        return subject.accepted_by
    return subject.user if isinstance(subject, ApiKey | QuestionBudget | _OF_PERSON) else None


# The same action by the same person on the same object from the same address is recorded once in this time.
AGAIN_AFTER = {
    "conversation.viewed": timedelta(minutes=10),
    "conversation.listed": timedelta(minutes=10),
    "sign_in.basic": timedelta(hours=1),
}


@receiver(user_logged_in, dispatch_uid="audit.signed_in")
def _record_sign_in(user: User, **_: Any) -> None:
    record_action("sign_in.succeeded", user)


@receiver(user_logged_out, dispatch_uid="audit.signed_out")
def _record_sign_out(user: User, **_: Any) -> None:
    if user is not None:
        record_action("sign_in.ended", user)


@receiver(user_login_failed, dispatch_uid="audit.sign_in_failed")
def _sign_in_failed(credentials: Mapping[str, object], **_: Any) -> None:
    # People sometimes type a password as their name, so only usernames are stored.
    users = get_user_model()
    name = credentials.get(users.USERNAME_FIELD) or credentials.get("username")
    user = users._default_manager.filter(**{users.USERNAME_FIELD: str(name).replace("\0", "")}).first()
    record_action("sign_in.failed", user, known=user is not None)


@receiver(happened, dispatch_uid="audit.happened")
def _record_action_unless_recent(action: str, subject: Model | None, details: Mapping[str, object], **_: Any) -> None:
    if action not in AGAIN_AFTER or not _has_happened_lately(action, subject):
        record_action(action, subject, **details)


def _has_happened_lately(action: str, subject: Model | None) -> bool:
    origin = _describe_action_origin()
    return AuditEntry.objects.filter(
        action=action,
        actor=origin.get("actor"),
        object_id=_get_id(subject),
        address=origin.get("address", ""),
        at__gt=timezone.now() - AGAIN_AFTER[action],
    ).exists()


def delete_old_entries() -> int:
    """Delete entries older than AUDIT_DAYS, and persons who then have none. Return the number of deleted entries."""
    if settings.AUDIT_DAYS <= 0:
        return 0
    with transaction.atomic():
        with connection.cursor() as cursor:
            # A trigger (migration 0003) allows deletions only with this setting.
            cursor.execute("SET LOCAL ragsite.audit_retention = 'on'")
        old = AuditEntry.objects.filter(at__lt=timezone.now() - timedelta(days=settings.AUDIT_DAYS))
        deleted = old.delete()[0]
        acted = AuditEntry.objects.exclude(actor=None).values("actor")
        concerned = AuditEntry.objects.exclude(object_person=None).values("object_person")
        AuditPerson.objects.exclude(pk__in=acted).exclude(pk__in=concerned).delete()
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL ragsite.audit_retention = 'off'")
    return deleted


def may_read_object_labels(user: AnyUser) -> bool:
    return not Collection.objects.exclude(pk__in=list_fully_readable_collections(user)).exists()


def json_lines(entries: QuerySet[AuditEntry], *, with_labels: bool = True) -> Iterator[str]:
    ordered = entries.select_related("actor", "object_person").order_by("at", "pk")
    for entry in ordered.iterator(chunk_size=2000):
        yield json.dumps(convert_to_payload(entry, with_label=with_labels), ensure_ascii=False) + "\n"


def convert_to_payload(entry: AuditEntry, *, with_label: bool = True) -> EntryPayload:
    """Return the entry as JSON. If ``with_label`` is false, the object's label and the details are empty."""
    return {
        "id": entry.pk,
        "at": entry.at.isoformat(),
        "action": entry.action,
        "actor": _describe_person(entry.actor),
        "key": entry.key or None,
        "via": entry.via,
        "address": entry.address or None,
        "object": {
            "type": entry.object_type,
            "id": entry.object_id,
            "label": entry.object_label if with_label else "",
            "person": _describe_person(entry.object_person),
        },
        "details": entry.details if with_label else {},
    }


def _describe_person(person: AuditPerson | None) -> PersonPayload | None:
    return None if person is None else {"user_id": person.user_id, "name": person.name}
