"""The results of a question as a reader sees them: their order, and how many of them are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chat.answering.evidence import Evidence, nearest_of, nearest_unit, places
from chat.answering.passage import Excerpt, cut_excerpt, render
from chat.answering.units import QuotableUnit, sections_of
from chat.answering.words import stem_set
from chat.types import Alternative, ContextSource
from retrieval.text.markup import strip_markup
from retrieval.text.sentences import split_sentences
from retrieval.types import Passage

# At most so many passages are shown beside the first one.
MOST_ALTERNATIVES = 3
# The lead of the first score over the second shows how sure the search is. With a lead of 1, a second passage adds one
# of 29 answers, and further ones none; from .5 a second and a third add one of 22 each; below, three of them add six of
# 30 (half of a tuning set of 81 questions of handbooks; the other half agrees).
SURE, NEARLY_SURE = 1.0, 0.5
# An excerpt that shows less than this of its passage is followed by the whole passage.
SHOWN_SHARE = 0.6
_WORD = re.compile(r"\w+")


def count_alternatives(results: Sequence[ContextSource]) -> int:
    """Return how many passages are shown beside the first one, from 1 to MOST_ALTERNATIVES.

    Methods whose scores differ by less, such as RRF, never count as sure.
    """
    scores = sorted((result.block.score for result in results), reverse=True)
    lead = scores[0] - scores[1] if len(scores) > 1 else SURE
    return 1 if lead >= SURE else 2 if lead >= NEARLY_SURE else MOST_ALTERNATIVES


def rank_results(question: str, results: Sequence[ContextSource], evidence: Evidence) -> list[ContextSource]:
    """Return the results in the order in which they are shown.

    Sections come first whose heading is the question: "Bezoekuren" for "Wat zijn de bezoekuren?", and not the
    exceptions below it. Then come results that answer by themselves. The best one by rank may be in the question's
    language and about something else, while the passage that makes the question answerable is in another language.
    Those that are not even near by themselves come last: one passage may be close in meaning to all questions of a
    kind, and another have the words of this one.
    """
    asked = stem_set(question)

    def order(result: ContextSource) -> tuple[bool, bool, bool, float, int]:
        is_named = bool(asked) and stem_set(_first_heading(result)) == asked
        is_alone, is_near = result.marker in evidence.alone, result.marker in evidence.near
        return not is_named, not is_alone, not is_near, -result.block.score, result.marker

    return sorted(results, key=order)


def _first_heading(result: ContextSource) -> str:
    """Return the heading under which the passage begins; its path names the one above all of its sections."""
    best = result.block.best
    return next((each.heading for each in sections_of(result) if each.end > best.start), "")


def cut_results(
    question: str, results: Sequence[ContextSource], evidence: Evidence, *, is_answered: bool
) -> Iterator[tuple[Excerpt, QuotableUnit]]:
    """Yield what is shown of each result, in order, and the place in it closest to the question.

    All are cards, except the first one of a question that ``is_answered``. Results without anything to quote are left
    out, and those whose closest place an earlier one shows, or all of whose words, as copies of a document have.
    """
    shown: list[Excerpt] = []
    told: list[str] = []
    for result in rank_results(question, results, evidence):
        # Vectors of sentences cost as much as the search: the first passage alone is worth them.
        unit = nearest_unit(question, result, by_meaning=not shown)
        if unit is None or any(each.shows(unit) for each in shown):
            continue
        excerpt = cut_excerpt(question, unit, is_card=bool(shown) or not is_answered)
        words = " ".join(_WORD.findall(render(excerpt, is_cited=False)))
        if any(words in each for each in told):
            continue
        shown.append(excerpt)
        told.append(words)
        yield excerpt, unit


def whole_passage(question: str, excerpt: Excerpt) -> Alternative | None:
    """Return the passage of an excerpt that shows too little of it; None for other excerpts.

    On tuning questions it adds the answer to the page more often than a further passage does.
    """
    best = excerpt.source.block.best
    shown = sum(max(0, min(end, best.end) - max(start, best.start)) for start, end in excerpt.spans)
    if shown >= SHOWN_SHARE * (best.end - best.start):
        return None
    hidden = [unit for unit in places(excerpt.source) if not excerpt.shows(unit)]
    unit = nearest_of(question, hidden, by_meaning=False)
    return None if unit is None else as_alternative(Excerpt(excerpt.source, ((best.start, best.end),)), unit)


def find_snippet(question: str, passage: Passage) -> str:
    """Return the sentence, item or row of a passage with most of the question's words; the first one of those."""
    text, asked = passage.content, stem_set(question)
    spans = [(start, end) for start, end, _break in split_sentences(text, 0, len(text))]
    sentences = (text[start:end] for start, end in spans)
    return max(sentences, key=lambda each: len(asked & stem_set(strip_markup(each, all_links=True))), default="")


def as_alternative(excerpt: Excerpt, unit: QuotableUnit) -> Alternative:
    """Return the result as a passage beside an answer."""
    block = excerpt.source.block
    text = render(excerpt, is_cited=False)
    return Alternative(block.passage_at(unit.start), text, unit.text, unit.start, unit.end, block.score)
