"""The record of a search setting, and the sections that settings stand in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from retrieval.types import SearchMethod

KEPT = object()


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of a setting beside its name, type and default. Texts are in English; the forms translate them.

    ``bounds`` are the least and the most of a number. ``when_empty`` says what None stands for; without it None is not
    allowed. ``methods`` are those that the setting concerns, None for all. ``as_published`` is the value of a
    method that is asked for by name, KEPT where that is the profile's own.
    """

    section: str
    label: str
    help_text: str
    bounds: tuple[float, float] | None = None
    when_empty: str = ""
    methods: frozenset[SearchMethod] | None = None
    as_published: Any = KEPT


def _(text: str) -> str:
    """Marks a text for translation."""
    return text


RANKING, CANDIDATES, RERANK = _("Ranking"), _("Candidates"), _("Rerank")
CONTEXT, BOOSTS = _("Context"), _("Boosts")
# The sections of the form, in their order, with what each is about.
SECTIONS = {
    RANKING: _("How the two retrievers, by meaning (vector) and by words (lexical), become one list."),
    CANDIDATES: _("How many passages are looked at, and how many are returned."),
    RERANK: _("A second, slower look at the best candidates."),
    CONTEXT: _("What of the passages found an answer is written from."),
    BOOSTS: _("Documents whose metadata say something are moved up or down."),
}


def setting(default: Any, section: str, label: str, help_text: str, **more: Any) -> Any:
    """A field of a profile's settings, with its record; a callable makes the default."""
    how = {"default_factory": default} if callable(default) else {"default": default}
    return field(**how, metadata={"setting": Setting(section, label, help_text, **more)})
