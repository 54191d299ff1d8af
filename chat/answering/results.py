from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from chat.answering.checking.words import find_stems_of_texts
from chat.answering.evidence import Evidence, find_nearest, find_nearest_quotable_unit, list_units_of_best_chunk
from chat.answering.excerpt_markdown import render_excerpt
from chat.answering.excerpts import Excerpt, build_excerpt
from chat.answering.units import QuotableUnit, find_sections
from chat.types import AlternativePassage, ContextSource
from retrieval.text.markup import strip_markup
from retrieval.text.sentences import split_sentences

MOST_ALTERNATIVES = 3
# The lead is the best score minus the second. One alternative passage is shown if the lead is at least SURE, two if it
# is at least NEARLY_SURE, otherwise MOST_ALTERNATIVES. The limits come from half of 81 questions about handbooks. The
# alternatives contained the missing answer to:
# - 1 of 29 questions (second passage) and none (third) if the lead was at least 1;
# - 1 of 22 questions (second passage) and 1 (third) if the lead was at least 0.5;
# - 6 of 30 questions (three passages together) if the lead was smaller.
SURE, NEARLY_SURE = 1.0, 0.5
# If an excerpt shows less than this share of its passage, the whole passage is also shown, below the excerpt.
SHOWN_SHARE = 0.6
_WORD = re.compile(r"\w+")


def count_alternatives_to_show(results: Sequence[ContextSource]) -> int:
    """Return the number of passages to show in addition to the best one."""
    scores = sorted((result.block.score for result in results), reverse=True)
    lead = scores[0] - scores[1] if len(scores) > 1 else SURE
    return 1 if lead >= SURE else 2 if lead >= NEARLY_SURE else MOST_ALTERNATIVES


def rank_results(question: str, results: Sequence[ContextSource], evidence: Evidence) -> list[ContextSource]:
    """Return the results in the order in which they are shown.

    Results with the question as a heading come first, then results with evidence. Score, then marker, break ties.
    """
    asked = find_stems_of_texts(question)

    def order(result: ContextSource) -> tuple[bool, bool, bool, float, int]:
        is_named = bool(asked) and asked in map(find_stems_of_texts, _find_headings(result))
        is_alone, is_near = result.marker in evidence.alone, result.marker in evidence.near
        return not is_named, not is_alone, not is_near, -result.block.score, result.marker

    return sorted(results, key=order)


def _find_headings(result: ContextSource) -> list[str]:
    best = result.block.best
    return [each.heading for each in find_sections(result) if each.end > best.start and each.blocks[0].start < best.end]


def build_excerpts(
    question: str, results: Sequence[ContextSource], evidence: Evidence, *, is_answered: bool
) -> Iterator[tuple[Excerpt, QuotableUnit]]:
    """Yield the excerpt of each result in display order, with the sentence or row closest to the question.

    If ``is_answered``, the first excerpt is the answer. Repeated excerpts are left out.
    """
    shown: list[Excerpt] = []
    told: list[str] = []
    for result in rank_results(question, results, evidence):
        # Vectors of sentences take as long as the search, so only the first result gets them.
        unit = find_nearest_quotable_unit(question, result, by_meaning=not shown)
        if unit is None or any(each.shows(unit) for each in shown):
            continue
        excerpt = build_excerpt(question, unit, is_card=bool(shown) or not is_answered)
        words = " ".join(_WORD.findall(render_excerpt(excerpt, is_cited=False)))
        if any(words in each for each in told):
            continue
        shown.append(excerpt)
        told.append(words)
        yield excerpt, unit


def build_whole_passage_of_excerpt(question: str, excerpt: Excerpt) -> AlternativePassage | None:
    """Return the whole passage if the excerpt shows less than SHOWN_SHARE of it; otherwise None."""
    best = excerpt.source.block.best
    shown = sum(max(0, min(end, best.end) - max(start, best.start)) for start, end in excerpt.spans)
    if shown >= SHOWN_SHARE * (best.end - best.start):
        return None
    hidden = [unit for unit in list_units_of_best_chunk(excerpt.source) if not excerpt.shows(unit)]
    unit = find_nearest(question, hidden, by_meaning=False)
    return None if unit is None else build_alternative_passage(Excerpt(excerpt.source, ((best.start, best.end),)), unit)


@functools.lru_cache(maxsize=256)
def find_snippet(question: str, text: str) -> str:
    """Return the sentence of ``text`` with the most words of the question; of equals, the first."""
    asked = find_stems_of_texts(question)
    spans = [(start, end) for start, end, _break in split_sentences(text, 0, len(text))]
    sentences = (text[start:end] for start, end in spans)
    return max(
        sentences, key=lambda each: len(asked & find_stems_of_texts(strip_markup(each, all_links=True))), default=""
    )


def build_alternative_passage(excerpt: Excerpt, unit: QuotableUnit) -> AlternativePassage:
    block = excerpt.source.block
    text = render_excerpt(excerpt, is_cited=False)
    return AlternativePassage(block.passage_at(unit.start), text, unit.text, unit.start, unit.end, block.score)
