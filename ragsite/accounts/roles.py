"""Roles of staff, as groups that are there from the start. Administrators may change and delete them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

_ALL = ("view", "add", "change", "delete")
_READ = ("view",)
# Without the keys of the API, which superusers alone see and revoke.
_APPS = ("auth", "retrieval", "chat", "evaluation", "ragsite")
# What each role may do with which models. What it sees of them is decided by the rights in collections.
ROLES: dict[str, dict[str, tuple[str, ...]]] = {
    "Curators": {
        # Whoever adds a collection manages it, by a grant.
        "retrieval.collection": ("view", "add"),
        "retrieval.document": _ALL,
        "retrieval.chunk": ("view", "change"),
        "retrieval.draft": ("view", "add", "change"),
        "retrieval.source": _ALL,
        "chat.approvedanswer": _ALL,
        "chat.collectioninstructions": ("view", "add", "change"),
        **dict.fromkeys(("chat.answer", "chat.citation", "chat.conversation", "chat.feedback"), _READ),
        **dict.fromkeys(("evaluation.judgement", "evaluation.score"), _READ),
    },
    "Evaluators": {
        "retrieval.collection": _READ,
        "retrieval.document": _READ,
        "retrieval.chunk": _READ,
        "retrieval.draft": _READ,
        "retrieval.searchprofile": _READ,
        "chat.answer": _READ,
        "chat.conversation": _READ,
        "evaluation.evaluationset": _ALL,
        "evaluation.evaluationquestion": _ALL,
        "evaluation.expectedpassage": _ALL,
        "evaluation.evaluationrun": _ALL,
        "evaluation.judgement": ("view", "change"),
        "evaluation.judgeusage": _READ,
        "evaluation.score": _READ,
        "evaluation.gatepolicy": _READ,
        "evaluation.experiment": _READ,
    },
    "Auditors": {"*": _READ},
    "Administrators": {"*": (*_ALL, "override")},
}


def create_roles(**_options: Any) -> None:
    """The groups that are missing, with their permissions; one that is there stays as it is.

    Not before all apps have their tables: a group would be left with a part of its permissions.
    """
    if not Permission.objects.filter(content_type__app_label="evaluation").exists():
        return
    for name, rights in ROLES.items():
        group, is_new = Group.objects.get_or_create(name=name)
        if is_new:
            group.permissions.set(Permission.objects.filter(_find(rights)))


def _find(rights: dict[str, tuple[str, ...]]) -> Q:
    named = Q(pk__in=[])
    for model, actions in rights.items():
        for action in actions:
            if model == "*":
                others = Q(content_type__app_label__in=_APPS, codename__startswith=f"{action}_")
                named |= others & ~Q(content_type__app_label="ragsite", content_type__model="apikey")
            else:
                app, _, name = model.partition(".")
                named |= Q(content_type__app_label=app, codename=f"{action}_{name}")
    return named
