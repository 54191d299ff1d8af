"""The candidates and sentences of one answer for the debug panel: snippets, scores as bars, labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.text import Truncator
from django.utils.translation import gettext_lazy

from chat.models import Answer
from chat.pages.cards import passage_url, plain
from chat.types import AnswerTrace, KnownPassage
from retrieval.search.trace import SearchTrace
from retrieval.types import Candidate, Retriever, RetrieverScore

# The words of a passage around what a search found in it. Pure Python.

Span = tuple[int, int]

FRAGMENT_CHARACTERS = 300
# So much is shown in front of the first match.
LEAD_CHARACTERS = 40
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class SnippetPart:
    """A stretch of text; ``marked`` where it matches."""

    text: str
    marked: bool = False


def snippet(text: str, spans: Iterable[Span] = ()) -> tuple[SnippetPart, ...]:
    """The text around the first matching span, or its beginning; matches are marked.

    ``spans`` are offsets ``[start, end)`` in the text in any order. White space becomes one blank; "…" replaces text
    left out. Empty for an empty text.
    """
    matches = sorted(span for span in spans if 0 <= span[0] < span[1] <= len(text))
    start, end = _cut(text, max(0, matches[0][0] - LEAD_CHARACTERS) if matches else 0)
    pieces = [
        SnippetPart("… " if text[:start].strip() else ""),
        *_pieces(text, start, end, matches),
        SnippetPart(" …" if text[end:].strip() else ""),
    ]
    return tuple(piece for piece in pieces if piece.text)


def _cut(text: str, start: int) -> Span:
    """A fragment from the first word at or after ``start`` to the end of a word."""
    if start and (space := _SPACE.search(text, start)) and space.start() - start < LEAD_CHARACTERS // 2:
        start = space.end()
    end = min(len(text), start + FRAGMENT_CHARACTERS)
    if end < len(text):
        space_before = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = space_before if space_before > start + FRAGMENT_CHARACTERS // 2 else end
    return start, end


def _pieces(text: str, start: int, end: int, matches: Sequence[Span]) -> list[SnippetPart]:
    pieces = []
    at = start
    for first, last in matches:
        if first < at or first >= end:
            continue
        pieces.append(SnippetPart(_SPACE.sub(" ", text[at:first])))
        pieces.append(SnippetPart(_SPACE.sub(" ", text[first : min(last, end)]), marked=True))
        at = min(last, end)
    pieces.append(SnippetPart(_SPACE.sub(" ", text[at:end])))
    return pieces


# The candidates of a saved search, as rows of a table. Pure Python.

UNKNOWN = KnownPassage(title="", section="", preview="")


@dataclass(frozen=True, slots=True)
class Shown:
    """The text of a candidate's passage, and the address where it can be read; ``href`` is empty if it was deleted.

    ``is_closed`` is true if it exists and the viewer may not read it.
    """

    pieces: tuple[SnippetPart, ...] = ()
    href: str = ""
    page: str = ""
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """A retriever's rank and score of a candidate, and the bar of its contribution: start and width, in percent. The
    bar begins in the middle (50) and extends right if positive, left if negative.
    """

    score: RetrieverScore
    largest: float

    @property
    def width(self) -> float:
        return round(50 * min(1.0, abs(self.score.contribution) / self.largest), 1)

    @property
    def start(self) -> float:
        return 50.0 if self.score.contribution >= 0 else 50.0 - self.width


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate. ``added_parts`` are the parts of its score without a column: bonus, boosts; ``added`` is their
    sum. ``moved`` is the number of places by which the reranker raised it.
    """

    candidate: Candidate
    known: KnownPassage
    shown: Shown
    vector: ScoreBar
    lexical: ScoreBar
    added_parts: tuple[tuple[str, float], ...]
    added: float
    moved: int


def candidate_rows(trace: AnswerTrace, shown: Mapping[int, Shown]) -> tuple[CandidateRow, ...]:
    """The candidates of a trace: the kept ones by rank, then the dropped ones by score, ties by chunk id.

    ``shown`` has the passages by chunk id; those that the viewer may not read are closed. A candidate missing from it
    was deleted, and shows the beginning that the trace has kept.
    """
    contributions = [score.contribution for each in trace.candidates for score in each.retrievers.values()]
    largest = max(map(abs, contributions), default=0.0) or 1.0
    ordered = sorted(trace.candidates, key=lambda each: (each.rank is None, each.rank or 0, -each.score, each.chunk_id))
    rows = []
    for each in ordered:
        known = trace.passages.get(each.chunk_id, UNKNOWN)
        parts = (("both retrievers", each.bonus), *((boost.name, boost.contribution) for boost in each.boosts))
        rows.append(
            CandidateRow(
                each,
                known,
                shown.get(each.chunk_id) or Shown(snippet(known.preview)),
                ScoreBar(each.retrievers[Retriever.VECTOR], largest),
                ScoreBar(each.retrievers[Retriever.LEXICAL], largest),
                tuple((name, contribution) for name, contribution in parts if contribution),
                sum(contribution for _name, contribution in parts),
                each.rerank.rank_before - each.rank if each.rerank and each.rank is not None else 0,
            )
        )
    return tuple(rows)


def used_weights(trace: SearchTrace) -> dict[str, float]:
    """The retrievers' weights for this question, which some methods choose for each question; else those
    of the plan.
    """
    used = {retriever.value: trace.weights.of(retriever) for retriever in Retriever}
    for candidate in trace.candidates:
        scores = candidate.retrievers.items()
        used.update({retriever.value: score.weight for retriever, score in scores if score.score is not None})
    return used


# What the stages of an answer are called in the panel.

STAGES = {
    "reformulate": gettext_lazy("reformulate"),
    "classify": gettext_lazy("classify and plan"),
    "legs": gettext_lazy("both retrievers"),
    "vector": gettext_lazy("vector retriever"),
    "lexical": gettext_lazy("lexical retriever"),
    "scores": gettext_lazy("missing scores"),
    "fuse": gettext_lazy("fuse"),
    "rerank": gettext_lazy("rerank"),
    "load": gettext_lazy("load passages"),
    "search": gettext_lazy("search"),
    "context": gettext_lazy("assemble the context"),
    "wait": gettext_lazy("wait for the first word"),
    "decide": gettext_lazy("decide that no document answers"),
    "write": gettext_lazy("write"),
    "check": gettext_lazy("check the sentences"),
    "answer": gettext_lazy("answer"),
    "total": gettext_lazy("total"),
}

REASONS = {
    "number": gettext_lazy("a number in it is not in the source"),
    "name": gettext_lazy("a name in it is not in the source"),
    "negation": gettext_lazy("one of them negates what the other says"),
    "words": gettext_lazy("its words are not in the source"),
    "uncited": gettext_lazy("it names no source"),
}


def stage_label(name: str) -> str:
    """A stage's name for people; the trace's name for an unknown stage."""
    return str(STAGES.get(name, name.replace("_", " ")))


def reason_label(name: str) -> str:
    """The reason to doubt a sentence, in words."""
    return str(REASONS.get(name, name))


# The sentences of an answer and how far their sources bear them out.

PASSAGE_CHARACTERS = 220


def sentences_of(answer: Answer) -> tuple[dict[str, Any], ...]:
    """The checked sentences in the order of the answer, as they are stored, each with its ``text``, its ``reasons`` in
    words, and the ``passage`` that supports it best with its ``href``; empty if none were checked.
    """
    sources = {source["marker"]: source for source in answer.sources}
    return tuple(_sentence(answer.text, statement, sources) for statement in answer.statements)


def _sentence(text: str, statement: Mapping[str, Any], sources: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    best = statement.get("best") or {}
    source = sources.get(best.get("marker", 0))
    passage = href = ""
    if source is not None:
        start, end = best["start"], best["end"]
        words = source["content"][max(0, start - source["start"]) : max(0, end - source["start"])]
        passage = Truncator(plain(words)).chars(PASSAGE_CHARACTERS)
        href = passage_url(source["document"]["id"], start, end)
    return {
        **statement,
        "text": plain(text[statement["start"] : statement["end"]]),
        "reasons": [reason_label(reason) for reason in statement.get("reasons", ())],
        "passage": passage,
        "href": href,
    }
