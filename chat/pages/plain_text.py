"""An answer as one text, for readers who get nothing but its words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chat.pages.cards import place


def whole_text(answer: Mapping[str, Any]) -> str:
    """The text of an answer (in the form of chat.streaming.payloads.completed); of a refusal also its near places, and
    the questions that are offered instead; of an approved answer who vouches for it.

    It begins with the answer's own text, so that the positions of its markers hold.
    """
    return "\n\n".join([answer["text"], *_near_places(answer), *_choices(answer), *_approval(answer)])


def _near_places(answer: Mapping[str, Any]) -> Iterator[str]:
    for near in answer["near"]:
        where = " · ".join(filter(None, [near["document"]["title"], _place(near)]))
        quote = "\n".join(f"> {line}".rstrip() for line in near["quote"].splitlines())
        yield f"{where}\n\n{quote}"


def _place(near: Mapping[str, Any]) -> str:
    return place(near.get("collection", ""), near["section"], near["page"], near.get("page_unit", "page"))


def _approval(answer: Mapping[str, Any]) -> Iterator[str]:
    if approved := answer.get("approved"):
        yield approved_line(approved["by"], date.fromisoformat(approved["on"]))


def approved_line(by: str, on: date) -> str:
    """Who vouches for an answer, in words."""
    return _("Approved by %(name)s on %(date)s") % {"name": by, "date": date_format(on)}


def _choices(answer: Mapping[str, Any]) -> Iterator[str]:
    if choices := answer["choices"]:
        yield "\n".join([_("Did you mean:"), *(f"- {choice['question']}" for choice in choices)])
