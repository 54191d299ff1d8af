"""An answer as one text, for readers who get nothing but its words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from chat.pages.cards import place


def whole_text(answer: Mapping[str, Any]) -> str:
    """The text of an answer (in the form of chat.streaming.payloads.completed); of a refusal also its near places, and
    the questions that are offered instead.

    It begins with the answer's own text, so that the positions of its markers hold.
    """
    return "\n\n".join([answer["text"], *_near_places(answer), *_choices(answer)])


def _near_places(answer: Mapping[str, Any]) -> Iterator[str]:
    for near in answer["near"]:
        where = " · ".join(filter(None, [near["document"]["title"], _place(near)]))
        quote = "\n".join(f"> {line}".rstrip() for line in near["quote"].splitlines())
        yield f"{where}\n\n{quote}"


def _place(near: Mapping[str, Any]) -> str:
    return place(near.get("collection", ""), near["section"], near["page"], near.get("page_unit", "page"))


def _choices(answer: Mapping[str, Any]) -> Iterator[str]:
    if choices := answer["choices"]:
        yield "\n".join([_("Did you mean:"), *(f"- {choice['question']}" for choice in choices)])
