"""Sentences of a document that speak to a language model instead of a reader. PURE.

They are flagged for curators and left out of what a model is told; nothing is rejected or hidden for them. What reads
like an ordinary task ("Write a poem") is not recognised, nor is any language but English and Dutch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrieval.text.instruction_rules import ORDER, RULES, SUSPECT
from retrieval.text.sentences import split_sentences

# So many places are kept with a document.
MOST_SHOWN = 20
# Of a longer stretch without an end of a sentence, pieces of this many characters are judged.
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Instruction:
    """``text[start:end]`` reads like an instruction to whoever answers questions, by ``rule``."""

    start: int
    end: int
    rule: str


def find_instructions(text: str) -> list[Instruction]:
    """The sentences, list items and lines of the text that instruct a model, in order.

    An order ("Say that …", "Send it to …") is one where a neighbour is: alone, it may be meant for a reader.
    """
    pieces = list(_pieces(text))
    rules = [match_rule(text[start:end]) for start, end in pieces]
    # On the way there and on the way back: an order may stand before what it belongs to.
    for order in (range(1, len(pieces)), range(len(pieces) - 2, -1, -1)):
        for at in order:
            neighbour = rules[at - order.step]
            if neighbour and not rules[at] and ORDER.match(text, *pieces[at]):
                rules[at] = neighbour
    return [Instruction(*piece, rule) for piece, rule in zip(pieces, rules, strict=True) if rule]


def to_rows(found: Sequence[Instruction]) -> list[list[int | str]]:
    """The first of them as they are stored: [start, end, rule]."""
    return [[each.start, each.end, each.rule] for each in found[:MOST_SHOWN]]


def match_rule(sentence: str) -> str:
    """The rule by which a sentence instructs a model; empty for none."""
    if not SUSPECT.search(sentence):
        return ""
    return next((rule for rule, patterns in RULES.items() if any(each.search(sentence) for each in patterns)), "")


def without_instructions(text: str, replacement: str) -> str:
    """The text with ``replacement`` in place of each sentence that instructs a model."""
    kept = []
    begin = 0
    for found in find_instructions(text):
        kept += [text[begin : found.start], replacement]
        begin = found.end
    return "".join([*kept, text[begin:]])


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    for start, end, _break in split_sentences(text, 0, len(text)):
        for begin in range(start, end, _LONGEST):
            yield begin, min(end, begin + _LONGEST)
