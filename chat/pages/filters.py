from __future__ import annotations

from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from chat.models import Answer, Conversation
from core.user_types import AnyUser
from retrieval.rights.chosen_filters import (
    FilterChip,
    build_form,
    has_filters,
    keep_offered_filters,
    list_chips,
    read_chosen_filters,
    remove_chip,
)
from retrieval.rights.offered_filters import Kind, OfferedFilter, list_offered_filters


def read_filters(data: QueryDict, user: AnyUser, collection: str) -> tuple[dict[str, Any], str]:
    """Return the filters that a form or link contains, and an error message ("" if there is no error)."""
    chosen, problem = read_chosen_filters(data, list_offered_filters(user, collection))
    return remove_chip(chosen, data.get("remove", "")) if "remove" in data else chosen, problem


def build_filter_context(
    user: AnyUser, collection: str, conversation: Conversation | None, data: QueryDict | None = None
) -> dict[str, Any]:
    """Return the template context for the filters of the next question.

    The filters in ``data``, a form or link, are used. If it has none, the filters of the conversation's last question
    are used.
    """
    offered = list_offered_filters(user, collection)
    problem = ""
    if data is not None and has_filters(data):
        chosen, problem = read_filters(data, user, collection)
    else:
        was = conversation.collection.slug if conversation and conversation.collection else ""
        chosen = keep_offered_filters(conversation.filters, offered) if conversation and was == collection else {}
    return {
        "filter_fields": build_form(offered, chosen),
        "filter_chips": list_chips(chosen, offered),
        "filter_problem": problem,
    }


def build_filter_chips(answer: Answer, viewer: AnyUser | None = None) -> tuple[FilterChip, ...]:
    """Return the filters of an answer as labels for the page.

    Fields and values of documents that the ``viewer`` (None: the asker) may not read are left out.
    """
    if not answer.asked_filters:
        return ()
    collection = answer.collection.slug if answer.collection else ""
    offered = list_offered_filters(answer.asker if viewer is None else viewer, collection)
    if viewer is None:
        return tuple(list_chips(answer.asked_filters, offered))
    seen = keep_offered_filters(answer.asked_filters, offered)
    shown = [chip for chip in list_chips(seen, offered) if _is_known(chip, offered)]
    hidden = len(list_chips(answer.asked_filters, ())) - len(shown)
    return (*shown, *([FilterChip("", _("Filters"), _("not shown to you"), "")] if hidden else []))


def _is_known(chip: FilterChip, offered: tuple[OfferedFilter, ...]) -> bool:
    each = next(one for one in offered if one.field == chip.field)
    return each.kind != Kind.VALUES or any(f"{each.field}={value.value}" == chip.token for value in each.values)
