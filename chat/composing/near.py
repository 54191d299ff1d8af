"""The places that come near a question that is not answered. PURE."""

from __future__ import annotations

from dataclasses import replace

from chat.composing.selection import select
from chat.grounding.evidence.answerability import Evidence
from chat.questions.analysis import analyse
from chat.questions.types import QuestionKind
from chat.types import NearPlace

MOST_PLACES = 3
# What scores less has little to do with the question.
NEAR = 0.3


def find_near(question: str, evidence: Evidence) -> tuple[NearPlace, ...]:
    """At most MOST_PLACES places, the nearest first; each a few sentences, an item or a row."""
    near = replace(evidence, scored=tuple(each for each in evidence.scored if each.score >= NEAR))
    places = []
    for excerpt in select(replace(analyse(question), kind=QuestionKind.FACT, expects=None), near, MOST_PLACES):
        block = excerpt.source.block
        start, end = excerpt.spans[-1]
        quote = block.content[start - block.start : end - block.start]
        places.append(NearPlace(block.passage_at(start), quote, start, end))
    return tuple(places)
