"""All that the site keeps about a person, as JSON."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db.models import Model, Q
from django.http import JsonResponse

from chat.conversations.rights import withheld_from, withheld_message
from chat.models import Answer, Conversation
from ragsite.models import ApiKey, AuditEntry
from ragsite.operations.audit_log import as_json, record


def person_file(user: Any, name: str) -> JsonResponse:
    """All that is kept about the person, as a file to download; the audit log records it."""
    record("person.exported", user)
    response = JsonResponse(person_as_json(user), json_dumps_params={"indent": 2, "ensure_ascii": False})
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def person_as_json(user: Any) -> dict[str, Any]:
    entries = AuditEntry.objects.filter(Q(actor__user_id=user.pk) | Q(object_person__user_id=user.pk))
    conversations = Conversation.objects.filter(owner=user).order_by("created_at").prefetch_related("answers__feedback")
    return {
        "account": {
            "id": user.pk,
            "name": user.get_username(),
            "first_name": user.first_name,
            "last_name": user.last_name,
            "email": user.email,
            "joined": user.date_joined.isoformat(),
            "last_sign_in": user.last_login.isoformat() if user.last_login else None,
            "is_active": user.is_active,
            "is_staff": user.is_staff,
            "is_superuser": user.is_superuser,
            "groups": sorted(group.name for group in user.groups.all()),
        },
        "email_addresses": list(
            EmailAddress.objects.filter(user=user).order_by("pk").values("email", "verified", "primary")
        ),
        "single_sign_on": list(
            SocialAccount.objects.filter(user=user).order_by("pk").values("provider", "uid", "extra_data")
        ),
        "second_factors": _rows(Authenticator, user, "type"),
        "api_keys": [_key(key) for key in ApiKey.objects.filter(user=user).order_by("pk")],
        "conversations": [_conversation(conversation, user) for conversation in conversations],
        "audit_log": [_entry(entry, user) for entry in entries.select_related("actor", "object_person").order_by("pk")],
    }


def _entry(entry: AuditEntry, user: Any) -> dict[str, Any]:
    """An entry about the person, without the names of others and of documents."""
    told = as_json(entry, with_label=not entry.object_type.startswith(("retrieval.", "evaluation.")))
    if entry.actor is None or entry.actor.user_id != user.pk:
        told |= {"actor": None, "address": None, "key": None}
    return told


def _rows(model: type[Model], user: Any, *names: str) -> list[dict[str, Any]]:
    return list(model._default_manager.filter(user=user).order_by("pk").values(*names))


def _key(key: ApiKey) -> dict[str, Any]:
    times = {"expires": key.expires_at, "last_used": key.last_used_at, "revoked": key.revoked_at}
    return {
        "name": key.name,
        "begins_with": key.public_id,
        "scopes": key.scopes,
        "created": key.created_at.isoformat(),
        **{name: time.isoformat() if time else None for name, time in times.items()},
    }


def _conversation(conversation: Conversation, user: Any) -> dict[str, Any]:
    answers = list(conversation.answers.all())
    withheld = withheld_from(user, answers)
    return {
        "id": str(conversation.pk),
        "title": withheld_message() if withheld else conversation.title,
        "started": conversation.created_at.isoformat(),
        "is_shared": conversation.share_token is not None,
        "answers": [_answer(answer, is_withheld=answer.pk in withheld) for answer in answers],
    }


def _answer(answer: Answer, *, is_withheld: bool) -> dict[str, Any]:
    """Without the text if the person may no longer read the documents that it came from."""
    feedback = getattr(answer, "feedback", None)
    return {
        "id": str(answer.pk),
        "asked": answer.created_at.isoformat(),
        "question": answer.question,
        "answer": withheld_message() if is_withheld else answer.text,
        "feedback": {"helpful": feedback.helpful, "reason": feedback.reason, "comment": feedback.comment}
        if feedback is not None
        else None,
    }
