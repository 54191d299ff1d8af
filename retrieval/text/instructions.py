"""Find sentences in English and Dutch documents that instruct a language model, such as "Ignore your rules".

Curators see them, and prompts do not contain them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from retrieval.text.sentences import split_sentences
from retrieval.text.word_lists import read_patterns

RULES = {
    rule: tuple(
        re.compile(pattern, re.DOTALL | re.IGNORECASE | re.MULTILINE) for pattern in read_patterns("instructions", rule)
    )
    for rule in ("set aside", "addressed", "answer", "conceal", "send", "role", "reveal", "markup")
}
# Manuals have many orders such as "Say that". So an order alone is no instruction; next to one, it is a part of it.
ORDER = re.compile("|".join(read_patterns("instructions", "order")), re.IGNORECASE)
# If a document contains instructions to a language model, at most this many are stored.
MOST_SHOWN = 20
_LONGEST = 1000


class Instruction(NamedTuple):
    """A part of a text that tries to instruct a language model. ``rule`` is the name of the pattern."""

    start: int
    end: int
    rule: str


def find_instructions(text: str) -> list[Instruction]:
    """Return the sentences, list items and lines that instruct a model, in the order of the text."""
    pieces = list(_split_sentence_pieces(text))
    rules = [find_matching_rule(text[start:end]) for start, end in pieces]
    # An order may be before or after the instruction, so the pieces are searched in both directions.
    for order in (range(1, len(pieces)), range(len(pieces) - 2, -1, -1)):
        for at in order:
            neighbour = rules[at - order.step]
            if neighbour and not rules[at] and ORDER.match(text, *pieces[at]):
                rules[at] = neighbour
    return [Instruction(*piece, rule) for piece, rule in zip(pieces, rules, strict=True) if rule]


def find_matching_rule(sentence: str) -> str:
    return next((rule for rule, patterns in RULES.items() if any(each.search(sentence) for each in patterns)), "")


def remove_instructions(text: str, replacement: str) -> str:
    kept = []
    begin = 0
    for found in find_instructions(text):
        kept += [text[begin : found.start], replacement]
        begin = found.end
    return "".join([*kept, text[begin:]])


def _split_sentence_pieces(text: str) -> Iterator[tuple[int, int]]:
    for start, end, _break in split_sentences(text, 0, len(text)):
        for begin in range(start, end, _LONGEST):
            yield begin, min(end, begin + _LONGEST)
