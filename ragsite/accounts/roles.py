from __future__ import annotations

from itertools import product
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

_ALL = "view add change delete"
_APPS = ("auth", "retrieval", "chat", "evaluation", "ragsite")
# No role may use these models, because webhooks, for example, contain questions about any collection.
_OF_SUPERUSERS = ("apikey", "webhook", "webhookdelivery", "registeredconnector")
# The permissions of each role for each model. A user also needs rights in a collection to see its rows.
ROLES: dict[str, dict[str, str]] = {
    "Curators": {
        _ALL: "retrieval.document retrieval.source chat.approvedanswer",
        # A curator's right to change a collection comes from the grant that its creation stores, not from the role.
        "view add": "retrieval.collection",
        "view change": "retrieval.chunk",
        "view add change": "retrieval.draft chat.collectioninstructions",
        "view": "chat.answer chat.citation chat.conversation chat.feedback evaluation.judgement evaluation.score",
    },
    "Evaluators": {
        _ALL: "evaluation.evaluationset evaluation.evaluationquestion evaluation.expectedpassage "
        "evaluation.evaluationrun",
        "view change": "evaluation.judgement",
        "view": "retrieval.collection retrieval.document retrieval.chunk retrieval.draft retrieval.searchprofile "
        "chat.answer chat.conversation evaluation.judgeusage evaluation.score evaluation.gatepolicy "
        "evaluation.experiment",
    },
    "Auditors": {"view": "*"},
    "Administrators": {f"{_ALL} override": "*"},
}


def create_roles(**_options: Any) -> None:
    """Create missing roles (groups). Call it after the migrations of all apps, which create the permissions."""
    if not Permission.objects.filter(content_type__app_label="evaluation").exists():
        return
    for name, rights in ROLES.items():
        group, is_new = Group.objects.get_or_create(name=name)
        if is_new:
            group.permissions.set(Permission.objects.filter(_find_permissions(rights)))


def _find_permissions(rights: dict[str, str]) -> Q:
    named = Q(pk__in=[])
    for actions, models in rights.items():
        for action, model in product(actions.split(), models.split()):
            if model == "*":
                others = Q(content_type__app_label__in=_APPS, codename__startswith=f"{action}_")
                named |= others & ~Q(content_type__model__in=_OF_SUPERUSERS)
            else:
                app, _, name = model.partition(".")
                named |= Q(content_type__app_label=app, codename=f"{action}_{name}")
    return named
