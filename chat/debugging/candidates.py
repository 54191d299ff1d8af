from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chat.pages.cards import format_page_number
from chat.types import AnswerTrace
from retrieval.models import Chunk, Document
from retrieval.passage_address import build_passage_url
from retrieval.search.passage_rows import load_passages
from retrieval.search.ranking.lexical_ranker import find_matched_spans
from retrieval.search.trace import SearchTrace
from retrieval.types import Candidate, Passage, Retriever, RetrieverScore

FRAGMENT_CHARACTERS = 300
LEAD_CHARACTERS = 40


def highlight_snippet(text: str, spans: Iterable[tuple[int, int]] = ()) -> SafeString:
    """Return HTML of the text around the first of ``spans``, with all spans highlighted.

    ``spans`` are pairs of start and end, in any order. If there are none, the beginning of the text is returned.
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
class PassageWithSnippet:
    passage: Passage
    snippet: SafeString

    @property
    def href(self) -> str:
        return build_passage_url(self.passage.document_id, self.passage.start, self.passage.end)

    @property
    def passage_limits_href(self) -> str:
        """The URL of the page that shows where the document's passages begin and end."""
        return self.href.replace("?", "?passages=1&", 1)

    @property
    def page(self) -> str:
        return format_page_number(self.passage.page, self.passage.page_unit) if self.passage.page else ""


def load_readable_passages(candidates: Iterable[Candidate], viewer: Any) -> dict[int, PassageWithSnippet]:
    terms = {candidate.chunk_id: candidate.matched_terms for candidate in candidates}
    readable = Chunk.objects.filter(pk__in=terms, document__in=Document.objects.readable_by(viewer))
    passages = load_passages(readable.values_list("pk", flat=True))
    spans = find_matched_spans({pk: passage.content for pk, passage in passages.items()}, terms)
    return {
        pk: PassageWithSnippet(passage, highlight_snippet(passage.content, spans.get(pk, ())))
        for pk, passage in passages.items()
    }


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """A candidate's score by one retriever, and the bar that shows its contribution to the total score.

    ``start`` and ``width`` are percentages of the column's width. The bar extends from the middle of the column to the
    right, or to the left for a negative contribution. The contribution ``largest`` reaches the edge.
    """

    score: RetrieverScore
    largest: float

    @property
    def width_percent(self) -> float:
        return round(50 * min(1.0, abs(self.score.contribution) / self.largest), 1)

    @property
    def start_percent(self) -> float:
        return 50.0 if self.score.contribution >= 0 else 50.0 - self.width_percent


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A candidate passage as a row of the debug panel.

    - ``shown``: the passage; None if the viewer may not read it.
    - ``block``: the number, from 1, of the block of the prompt that contains the passage; None if no block does.
    - ``added_parts``: bonuses and boosts by name.
    - ``moved``: the number of ranks gained by reranking.
    """

    candidate: Candidate
    shown: PassageWithSnippet | None
    vector: ScoreBar
    lexical: ScoreBar
    added_parts: tuple[tuple[str, float], ...]
    added: float
    moved: int
    block: int | None = None


def build_candidate_rows(trace: AnswerTrace, shown: Mapping[int, PassageWithSnippet]) -> tuple[CandidateRow, ...]:
    """Return a row for each candidate: kept ones by rank, then dropped ones by score."""
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
                trace.blocks.get(str(each.chunk_id)),
            )
        )
    return tuple(rows)


def find_used_retriever_weights(trace: SearchTrace) -> dict[str, float]:
    used = {retriever.value: trace.weights.get(retriever) for retriever in Retriever}
    for retriever in Retriever:
        scores = [each.retrievers[retriever] for each in trace.candidates if retriever in each.retrievers]
        weights = {score.weight for score in scores if score.score is not None}
        if len(weights) == 1:
            used[retriever.value] = weights.pop()
    return used
