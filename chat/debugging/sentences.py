"""The sentences of an answer and how far their sources bear them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.text import Truncator

from chat.debugging.labels import reason_label
from chat.models import Answer
from chat.pages.cards import passage_url, plain

PASSAGE_CHARACTERS = 220


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it was checked. ``supported`` and ``support`` are None where it could not be measured, and
    ``verbatim`` says that it stands in a source word for word.

    ``best_marker`` is the source that supports it best, ``passage`` its words; ``href`` is empty without one.
    """

    text: str
    markers: tuple[int, ...]
    support: float | None
    supported: bool | None
    reasons: tuple[str, ...]
    best_marker: int | None = None
    passage: str = ""
    href: str = ""
    verbatim: bool = False


def sentences_of(answer: Answer) -> tuple[Sentence, ...]:
    """The checked sentences in the order of the answer; empty when none were checked."""
    sources = {source["marker"]: source for source in answer.sources}
    return tuple(_sentence(answer.text, statement, sources) for statement in answer.statements)


def supported_count(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """How many sentences are supported, and how many were measured."""
    measured = [sentence for sentence in sentences if sentence.supported is not None]
    return sum(bool(sentence.supported) for sentence in measured), len(measured)


def _sentence(text: str, statement: Mapping[str, Any], sources: Mapping[int, Mapping[str, Any]]) -> Sentence:
    best = statement.get("best") or {}
    source = sources.get(best.get("marker", 0))
    passage = href = ""
    if source is not None:
        start, end = best["start"], best["end"]
        words = source["content"][max(0, start - source["start"]) : max(0, end - source["start"])]
        passage = Truncator(plain(words)).chars(PASSAGE_CHARACTERS)
        href = passage_url(source["document"]["id"], start, end)
    return Sentence(
        text=plain(text[statement["start"] : statement["end"]]),
        markers=tuple(statement.get("markers", ())),
        support=statement.get("support"),
        supported=statement.get("supported"),
        reasons=tuple(map(reason_label, statement.get("reasons", ()))),
        best_marker=best.get("marker"),
        passage=passage,
        href=href,
        verbatim=statement.get("verbatim", False),
    )
