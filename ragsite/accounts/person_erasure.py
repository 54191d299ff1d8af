"""Erases a person: deletes the account and personal data, and takes the name out of what remains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.management.base import CommandError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.models import Answer, Conversation, QuestionBudget
from evaluation.models import EvaluationQuestion
from ragsite.accounts.rights import is_last_local_administrator
from ragsite.models import ApiKey, AuditEntry, AuditPerson, Invitation
from ragsite.operations.audit_log import person_of, record


def find_person(name: str) -> Any:
    """The user of that name, for a command. Raises: CommandError."""
    user = get_user_model()._default_manager.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no account named {name}.")
    return user


class LastAdministrator(Exception):
    """This is the last account that may administer the site."""

    def __init__(self) -> None:
        super().__init__(_("This is the last account that may administer the site: make another one first."))


@dataclass(frozen=True, slots=True)
class Erasure:
    """How many rows are deleted with a person, and how many remain without the name."""

    conversations: int
    answers: int
    keys: int
    audit_entries: int
    evaluation_questions: int

    def deleted(self) -> list[str]:
        return [
            _("The account, with its groups, permissions and sessions."),
            _("Conversations: %d.") % self.conversations,
            _("Questions, with their answers and feedback: %d.") % self.answers,
            _("API keys: %d.") % self.keys,
        ]

    def remaining(self) -> list[str]:
        return [
            _("Entries of the audit log: %d, with a pseudonym instead of the name.") % self.audit_entries,
            _("Questions in evaluation sets: %d, without the name.") % self.evaluation_questions,
            _("Documents, drafts, settings and evaluations that the person made, without the name."),
            _("Earlier backups, until they are deleted."),
        ]


def preview_erasure(user: Any) -> Erasure:
    return Erasure(
        conversations=Conversation.objects.filter(owner=user).count(),
        answers=Answer.objects.filter(conversation__owner=user).count(),
        keys=ApiKey.objects.filter(user=user).count(),
        audit_entries=AuditEntry.objects.filter(Q(actor__user_id=user.pk) | Q(object_person__user_id=user.pk)).count(),
        evaluation_questions=EvaluationQuestion.objects.filter(answer__conversation__owner=user).count(),
    )


@transaction.atomic
def erase_person(user: Any) -> Erasure:
    """Delete the account and personal data, and replace the name in the audit log. Returns the counts.

    Raises: LastAdministrator.
    """
    users = get_user_model()._default_manager
    # Locked, so that two administrators cannot erase each other at the same time.
    administrators = users.filter(is_superuser=True, is_active=True).select_for_update().order_by("pk")
    if [administrator.pk for administrator in administrators] == [user.pk] or is_last_local_administrator(user):
        raise LastAdministrator
    erasure = preview_erasure(user)
    user_id = user.pk
    invited = Q(accepted_by=user)
    if user.email:
        invited |= Q(email__iexact=user.email)
    Invitation.objects.filter(invited).delete()
    person = person_of(user)
    assert person is not None
    pseudonym = f"erased-{person.pk}"
    record("person.erased", user, conversations=erasure.conversations, keys=erasure.keys)
    _delete_sessions(user_id)
    content_type = ContentType.objects.get_for_model(users.model)
    LogEntry.objects.filter(content_type=content_type, object_id=str(user_id)).update(object_repr=pseudonym)
    of_person = ContentType.objects.get_for_models(Invitation, SocialAccount, QuestionBudget, Conversation, Answer)
    about = Q(object_repr__icontains=user.get_username())
    if user.email:
        about |= Q(object_repr__icontains=user.email)
    LogEntry.objects.filter(about, content_type__in=of_person.values()).update(object_repr=pseudonym)
    LogEntry.objects.filter(change_message__contains=f'"{user.get_username()}: ').update(change_message="")
    user.delete()
    AuditPerson.objects.filter(pk=person.pk).update(name=pseudonym, user_id=None)
    return erasure


def _delete_sessions(user_id: int) -> None:
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        if session.get_decoded().get(SESSION_KEY) == str(user_id):
            session.delete()
