"""The results of a question as a reader sees them: their order, and how many of them are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chat.answering.evidence import Evidence, nearest_unit
from chat.answering.passage import Excerpt, cut_excerpt, render
from chat.answering.units import QuotableUnit
from chat.types import Alternative, ContextSource

# At most so many passages are shown beside the first one.
MOST_ALTERNATIVES = 3


def count_alternatives(results: Sequence[ContextSource]) -> int:
    """Return how many passages are shown beside the first one."""
    return MOST_ALTERNATIVES


def rank_results(results: Sequence[ContextSource], evidence: Evidence) -> list[ContextSource]:
    """Return the results in the order in which they are shown.

    Results that answer by themselves come first. The best one by rank may be in the question's language and about
    something else, while the passage that makes the question answerable is in another language.
    """
    return sorted(results, key=lambda result: (result.marker not in evidence.alone, -result.block.score, result.marker))


def cut_results(
    question: str, results: Sequence[ContextSource], evidence: Evidence
) -> Iterator[tuple[Excerpt, QuotableUnit]]:
    """Yield of each result, in order, what is shown of it and the place in it closest to the question.

    Results without anything to quote are left out, and those whose closest place an earlier one shows.
    """
    shown: list[Excerpt] = []
    for result in rank_results(results, evidence):
        unit = nearest_unit(question, result)
        if unit is None or any(each.shows(unit) for each in shown):
            continue
        shown.append(cut_excerpt(question, unit))
        yield shown[-1], unit


def as_alternative(excerpt: Excerpt, unit: QuotableUnit) -> Alternative:
    """Return the result as a passage beside an answer."""
    block = excerpt.source.block
    text = render(excerpt, is_cited=False)
    return Alternative(block.passage_at(unit.start), text, unit.text, unit.start, unit.end, block.score)
