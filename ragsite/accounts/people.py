"""Export all data of a person as JSON, or erase them. An erasure keeps anonymous records, such as the audit log."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F, Model, Q
from django.http import JsonResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.conversations.rights import find_withheld_answers, get_withheld_message
from chat.models import Answer, Conversation, FollowedAnswer, QuestionBudget
from ragsite.accounts.claims import is_last_local_administrator
from ragsite.models import ApiKey, AuditEntry, AuditPerson, Invitation
from ragsite.operations.audit_log import EntryPayload, convert_to_payload, describe_person, record_action


def export_person(user: User, name: str) -> JsonResponse:
    record_action("person.exported", user)
    attachment = {"Content-Disposition": f'attachment; filename="{name}"'}
    options = {"indent": 2, "ensure_ascii": False}
    return JsonResponse(person_as_json(user), json_dumps_params=options, headers=attachment)


def person_as_json(user: User) -> dict[str, object]:
    entries = AuditEntry.objects.filter(Q(actor__user_id=user.pk) | Q(object_person__user_id=user.pk))
    conversations = Conversation.objects.filter(owner=user).order_by("created_at").prefetch_related("answers__feedback")
    return {
        "account": {
            **{name: getattr(user, name) for name in ("id", "first_name", "last_name", "email")},
            **{name: getattr(user, name) for name in ("is_active", "is_staff", "is_superuser")},
            "name": user.get_username(),
            "joined": user.date_joined,
            "last_sign_in": user.last_login,
            "groups": sorted(group.name for group in user.groups.all()),
        },
        "email_addresses": _list_rows(EmailAddress, user, "email", "verified", "primary"),
        "single_sign_on": _list_rows(SocialAccount, user, "provider", "uid", "extra_data"),
        "second_factors": _list_rows(Authenticator, user, "type"),
        "api_keys": _list_rows(
            ApiKey,
            user,
            "name",
            "scopes",
            begins_with=F("public_id"),
            created=F("created_at"),
            expires=F("expires_at"),
            last_used=F("last_used_at"),
            revoked=F("revoked_at"),
        ),
        "followed_answers": _list_rows(FollowedAnswer, user, "answer", "address", since=F("created_at")),
        "conversations": [_describe_conversation(conversation, user) for conversation in conversations],
        "audit_log": [
            _describe_audit_entry(entry, user)
            for entry in entries.select_related("actor", "object_person").order_by("pk")
        ],
    }


def _describe_audit_entry(entry: AuditEntry, user: User) -> EntryPayload:
    told = convert_to_payload(entry, with_label=not entry.object_type.startswith(("retrieval.", "evaluation.")))
    if entry.actor is None or entry.actor.user_id != user.pk:
        told |= {"actor": None, "address": None, "key": None}
    return told


def _list_rows(model: type[Model], user: User, *names: str, **renamed: F) -> list[dict[str, object]]:
    return list(model._default_manager.filter(user=user).order_by("pk").values(*names, **renamed))


def _describe_conversation(conversation: Conversation, user: User) -> dict[str, object]:
    answers = list(conversation.answers.all())
    withheld = find_withheld_answers(user, answers)
    return {
        "id": str(conversation.pk),
        "title": get_withheld_message() if withheld else conversation.title,
        "started": conversation.created_at,
        "is_shared": conversation.share_token is not None,
        "answers": [_describe_answer(answer, is_withheld=answer.pk in withheld) for answer in answers],
    }


def _describe_answer(answer: Answer, *, is_withheld: bool) -> dict[str, object]:
    feedback = getattr(answer, "feedback", None)
    return {
        "id": str(answer.pk),
        "asked": answer.created_at,
        "question": answer.question,
        "answer": get_withheld_message() if is_withheld else answer.text,
        "feedback": {"helpful": feedback.helpful, "reason": feedback.reason, "comment": feedback.comment}
        if feedback is not None
        else None,
    }


class LastAdministratorError(Exception):
    """An error: the account cannot be erased, because no other account can administer the site."""

    def __init__(self) -> None:
        super().__init__(_("This is the last account that may administer the site: make another one first."))


@transaction.atomic
def erase_person(user: User) -> None:
    """Delete the user's account and personal data, and put a pseudonym in the audit log.

    Raises: LastAdministratorError.
    """
    users = get_user_model()._default_manager
    # The rows of all administrators are locked. Otherwise, two of them could erase each other at the same time.
    administrators = users.filter(is_superuser=True, is_active=True).select_for_update().order_by("pk")
    if [administrator.pk for administrator in administrators] == [user.pk] or is_last_local_administrator(user):
        raise LastAdministratorError
    user_id = user.pk
    invited = Q(accepted_by=user)
    if user.email:
        invited |= Q(email__iexact=user.email)
    Invitation.objects.filter(invited).delete()
    person = describe_person(user)
    assert person is not None
    pseudonym = f"erased-{person.pk}"
    record_action("person.erased", user)
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        if session.get_decoded().get(SESSION_KEY) == str(user_id):
            session.delete()
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
