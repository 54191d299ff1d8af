"""The candidates of a saved search, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chat.pages.cards import page_label
from chat.types import AnswerTrace
from retrieval.passage_address import passage_url
from retrieval.search.trace import SearchTrace
from retrieval.types import Candidate, Passage, Retriever, RetrieverScore

FRAGMENT_CHARACTERS = 300
# So much is shown in front of the first match.
LEAD_CHARACTERS = 40


def snippet(text: str, spans: Iterable[tuple[int, int]] = ()) -> SafeString:
    """HTML of the text around the first matching span, or of its beginning; matches are marked.

    ``spans`` are offsets ``[start, end)`` in the text in any order. "…" replaces text left out. Empty for an empty
    text.
    """
    matches = sorted(span for span in spans if 0 <= span[0] < span[1] <= len(text))
    start = max(0, matches[0][0] - LEAD_CHARACTERS) if matches else 0
    if start:
        start = text.find(" ", start, matches[0][0]) + 1 or start
    end = start + FRAGMENT_CHARACTERS
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + FRAGMENT_CHARACTERS // 2)
    pieces, at = ["… " if text[:start].strip() else ""], start
    for first, last in matches:
        if at <= first < end:
            pieces += [text[at:first], format_html("<mark>{}</mark>", text[first : min(last, end)])]
            at = min(last, end)
    pieces += [text[at:end], " …" if text[end:].strip() else ""]
    return format_html_join("", "{}", ([piece] for piece in pieces))


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A candidate's passage as it is now, and HTML of its words around the matches."""

    passage: Passage
    snippet: SafeString

    @property
    def href(self) -> str:
        return passage_url(self.passage.document_id, self.passage.start, self.passage.end)

    @property
    def page(self) -> str:
        return page_label(self.passage.page, self.passage.page_unit) if self.passage.page else ""


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
    """One candidate. ``shown`` is None if its passage was deleted, or if the viewer may not read it. ``added_parts``
    are the parts of its score without a column: bonus, boosts; ``added`` is their sum. ``moved`` is the number of
    places by which the reranker raised it.
    """

    candidate: Candidate
    shown: ShownPassage | None
    vector: ScoreBar
    lexical: ScoreBar
    added_parts: tuple[tuple[str, float], ...]
    added: float
    moved: int


def candidate_rows(trace: AnswerTrace, shown: Mapping[int, ShownPassage]) -> tuple[CandidateRow, ...]:
    """The candidates of a trace: the kept ones by rank, then the dropped ones by score, ties by chunk id.

    ``shown`` has the passages that the viewer may read, by chunk id.
    """
    contributions = [score.contribution for each in trace.candidates for score in each.retrievers.values()]
    largest = max(map(abs, contributions), default=0.0) or 1.0
    ordered = sorted(trace.candidates, key=lambda each: (each.rank is None, each.rank or 0, -each.score, each.chunk_id))
    rows = []
    for each in ordered:
        parts = (("both retrievers", each.bonus), *((boost.name, boost.contribution) for boost in each.boosts))
        rows.append(
            CandidateRow(
                each,
                shown.get(each.chunk_id),
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
