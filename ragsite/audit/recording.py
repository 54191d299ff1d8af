from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Model

from chat.models import Answer, Conversation, QuestionBudget
from ragsite.audit.origin import current_origin
from ragsite.models import ApiKey, AuditEntry, AuditPerson, Invitation
from retrieval.models import CollectionGrant

# Rows that are called by the name or the address of a person.
_OF_PERSON = CollectionGrant | Invitation | SocialAccount | Authenticator


def record(action: str, subject: Model | None = None, **details: object) -> AuditEntry:
    """Write an entry, in the transaction of what it tells of: the one is not saved without the other.

    ``details`` can be written as JSON, and hold no text of documents, questions or answers.
    """
    origin = current_origin()
    return AuditEntry.objects.create(
        action=action,
        actor=person_of(origin.user),
        key=origin.key,
        via=origin.via,
        address=origin.address,
        object_type=subject._meta.label_lower if subject is not None else "",
        object_id=str(subject.pk) if subject is not None and subject.pk is not None else "",
        object_label=_label(subject),
        object_person=person_of(_concerned(subject)),
        details=details,
    )


def person_of(user: Any) -> AuditPerson | None:
    """The person as whom the user stands in the log, with the name that the user has now."""
    if user is None or user.pk is None:
        return None
    name = user.get_username()[:200]
    person, _is_new = AuditPerson.objects.get_or_create(user_id=user.pk, defaults={"name": name})
    if person.name != name:
        person.name = name
        person.save(update_fields=["name"])
    return person


def _label(subject: Model | None) -> str:
    """What the object is called. People are named elsewhere; a conversation is called by its first question."""
    if subject is None or isinstance(subject, AbstractBaseUser | Conversation | Answer | QuestionBudget | _OF_PERSON):
        return ""
    if subject.get_deferred_fields():
        # It was loaded to be deleted, and cannot be asked any more.
        return ""
    if isinstance(subject, ApiKey):
        # Its name is its owner's choice, and may say who that is.
        return f"{subject.public_id}…"
    return str(subject)[:300]


def _concerned(subject: Model | None) -> Any:
    if isinstance(subject, AbstractBaseUser):
        return subject
    if isinstance(subject, Invitation):
        return subject.accepted_by
    return subject.user if isinstance(subject, ApiKey | QuestionBudget | _OF_PERSON) else None
