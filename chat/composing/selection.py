"""Which places of the documents answer a question. PURE.

The kind of the question decides. A fact is answered by the sentence, item or row that holds it; a procedure or a list
by the whole block or section; a definition by the paragraph that opens a section or says what the thing is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chat.composing.cutting import cut_excerpt
from chat.composing.excerpt import Excerpt
from chat.composing.outline import likeness
from chat.grounding.evidence.units import QuotableUnit, UnitKind
from chat.grounding.words import SHORTEST_STEM, stems
from chat.questions.analysis import analyse, is_same_question
from chat.questions.presence import counted_stems, find_answer_values
from chat.questions.types import Question, QuestionKind, ValueKind
from retrieval.text.blocks import Block, BlockKind
from retrieval.text.blocks.outline import read_cells

if TYPE_CHECKING:
    from chat.grounding.evidence.answerability import Evidence
    from chat.grounding.evidence.relevance import ScoredUnit

_WHOLE = {QuestionKind.LIST, QuestionKind.PROCEDURE}
# What a unit gains that is of the kind that answers the question: it holds a value of the kind asked for, its section
# has steps, its sentence says what the thing is. About the difference between the first unit and the fourth.
FITTING_KIND = 0.12
FITTING_SECTION = 0.25
FITTING_HEADING = 0.3
# What stands under a heading that asks the question itself comes before all else.
SAME_QUESTION = 1.0
# The entry of a glossary comes before even that: a heading of one word tells less.
FITTING_ENTRY = 1.5
# A sentence that begins by saying what the thing is.
FITTING_SENTENCE = 0.4
# The fewest words that say what a thing is.
FEWEST_WORDS = 3
ITEM_SHARE = 0.85
LONGEST_NAME = 120

_SAYS_WHAT_IT_IS = re.compile(
    r"\b(?:is|are|means?|refers? to|stands? for|describes?|denotes?|consists? of|betekent|is een|zijn|houdt in|omvat)\b"
)
_ENTRY = re.compile(
    r"[\W_]{0,6}(?:(?:an?|the|een|de|het) )?(?P<term>[^\n:=]{2,60}?)[*_`]{0,3}"
    r"(?::| [–—=-] | (?P<verb>is|are|means|stands for|zijn|betekent|staat voor) )",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_OTHER_NAMES = re.compile(r"[,;/()]| or | of ")
# How headings name what a question word asks for.
_TIMES = re.compile(r"\b(?:hours|times|schedule|timetable)\b|(?:uren|tijden|rooster)\b", re.IGNORECASE)
_PRICES = re.compile(r"\b(?:price|cost|fee|rate|tarie(?:f|ven)|prij[sz]|kosten)", re.IGNORECASE)
_VALUES_IN_HEADINGS = {ValueKind.DATE: _TIMES, ValueKind.TIME: _TIMES, ValueKind.AMOUNT: _PRICES}


def select(question: Question, evidence: Evidence, most: int = 1) -> list[Excerpt]:
    """The excerpts that answer a question, the best first; at most ``most``, none for no units."""
    excerpts: list[Excerpt] = []
    picked: list[ScoredUnit] = []
    for candidate in rank(question, evidence):
        if len(excerpts) == most:
            break
        if any(_say_the_same(candidate, other, evidence.repeats_from) for other in picked):
            continue
        excerpt = cut_excerpt(question, candidate.unit)
        if not any(excerpt.overlaps(other) for other in excerpts):
            picked.append(candidate)
            excerpts.append(excerpt)
    return excerpts


def rank(question: Question, evidence: Evidence) -> list[ScoredUnit]:
    """The units by how well they bear on the question and by whether they are of the kind that answers it."""
    scored = (*evidence.scored, *evidence.wholes) if question.kind in _WHOLE else evidence.scored
    best_of = _best_of_blocks(scored)
    ranked = []
    for each in scored:
        score = max(each.score, best_of.get(each.unit.block, 0.0)) if each.unit.kind is UnitKind.WHOLE else each.score
        ranked.append(replace(each, score=score + _fit(question, each.unit)))
    return sorted(ranked, key=lambda each: -each.score)


def select_comparing(question: Question, names: Sequence[str], evidence: Evidence) -> Excerpt | None:
    """The best place that compares the named things: its heading, or the head of its table, names all of them."""
    named = [set(stems(name)) for name in names]
    for candidate in rank(question, evidence):
        unit = candidate.unit
        for title in (unit.section.heading, unit.table_head):
            words = set(stems(title))
            if all(name and name <= words for name in named):
                return cut_excerpt(question, unit)
    return None


def _best_of_blocks(scored: Sequence[ScoredUnit]) -> dict[Block, float]:
    """For each block the score of the sentence that introduces it, or of its best item, which counts less."""
    best: dict[Block, float] = {}
    for each in scored:
        score = each.score * (ITEM_SHARE if each.unit.kind in (UnitKind.ITEM, UnitKind.ROW) else 1.0)
        best[each.unit.block] = max(best.get(each.unit.block, 0.0), score)
    return best


def _fit(question: Question, unit: QuotableUnit) -> float:
    """What a unit gains or loses by being of a kind that answers such a question or not."""
    kinds = {block.kind for block in unit.section.blocks}
    gain = 0.0
    match question.kind:
        case QuestionKind.DEFINITION:
            gain = FITTING_KIND * (unit.opens + bool(_SAYS_WHAT_IT_IS.search(unit.text[:120]))) / 2
            is_entry = unit.opens and set(stems(unit.heading)) == set(stems(question.topic))
            if is_entry or _spells_out(question.topic, unit):
                gain += FITTING_SECTION
            gain += _fit_as_entry(question.topic, unit)
        case QuestionKind.CODE:
            gain = FITTING_KIND * (unit.kind is UnitKind.CODE or "`" in unit.text or BlockKind.CODE in kinds)
        case QuestionKind.PROCEDURE:
            has_steps = BlockKind.STEPS in kinds or _is_step(unit)
            gain = FITTING_KIND * has_steps + FITTING_KIND * (unit.kind is UnitKind.WHOLE)
        case QuestionKind.LIST:
            gain = FITTING_SECTION * (unit.kind is UnitKind.WHOLE)
        case QuestionKind.FACT | QuestionKind.COUNT | QuestionKind.SUPERLATIVE:
            gain = FITTING_KIND * bool(find_answer_values(question, unit.text))
            if gain and (counted := counted_stems(question)):
                gain *= len(counted & set(stems(unit.text))) / len(counted)
            gain += FITTING_SECTION * bool(gain and _names_such_values(question, unit.section.heading))
    if is_same_question(question, unit.section.heading):
        gain += SAME_QUESTION
    if question.kind in _WHOLE:
        gain += FITTING_HEADING * likeness(question.text, unit.section.heading)
    if unit.block.kind is BlockKind.QUESTION and unit.heading and analyse(unit.heading).kind is not question.kind:
        gain -= FITTING_KIND
    return gain


def _names_such_values(question: Question, heading: str) -> bool:
    """Whether a heading names values of the kind asked for of what is asked about ("Visiting hours": When may I
    visit?)."""
    named = _VALUES_IN_HEADINGS.get(question.expects) if question.expects is not None else None
    if named is None or not named.search(heading):
        return False
    return any(stem in heading.lower() for stem in stems(question.topic) if len(stem) >= SHORTEST_STEM)


def _is_step(unit: QuotableUnit) -> bool:
    """Whether the unit's section is one of the steps of a procedure."""
    return any(each.start <= unit.section.start < each.end for each in unit.source.block.procedures)


def _spells_out(topic: str, unit: QuotableUnit) -> bool:
    """Whether the topic is an abbreviation that the unit explains: it stands behind the words in brackets, or the unit
    opens the section or the document whose title it is short for ("Objectives and Key Results": OKRs)."""
    letters = "".join(letter for letter in topic if letter.isupper())
    if len(letters) < 2 or len(topic.split()) > 1:
        return False
    if f"({topic})".casefold() in unit.text[:LONGEST_NAME].casefold():
        return True
    return unit.opens and _initials(unit.section.heading) == letters


def _fit_as_entry(topic: str, unit: QuotableUnit) -> float:
    """What a unit gains that is the topic's entry in a glossary: its first cell, or what stands before a colon or a
    dash, is the topic or one of its names ("late interaction, MaxSim"); or that begins with "A topic is"."""
    wanted = set(stems(topic))
    if not wanted:
        return 0.0
    if unit.kind is UnitKind.ROW:
        names, *meaning = [cell for cell in read_cells(unit.text) if cell.strip()] or [""]
        # The row of a measured thing says what it weighs, not what it is.
        gain = FITTING_ENTRY if len(_WORD.findall(" ".join(meaning))) >= FEWEST_WORDS else 0.0
    elif entry := _ENTRY.match(unit.text):
        names = entry["term"]
        gain = FITTING_SENTENCE if entry["verb"] else FITTING_ENTRY
    else:
        return 0.0
    return gain * any(set(stems(name)) == wanted for name in (names, *_OTHER_NAMES.split(names)))


def _initials(title: str) -> str:
    return "".join(word[0] for word in re.findall(r"\w+", title) if word[0].isupper())


def _say_the_same(first: ScoredUnit, second: ScoredUnit, repeats_from: float | None) -> bool:
    if first.unit.text == second.unit.text:
        return True
    if repeats_from is None or first.vector is None or second.vector is None or first.unit.kind is UnitKind.ROW:
        return False
    return float(np.dot(first.vector, second.vector)) > repeats_from
