"""Questions that name a family of things and mean one of it: "How heavy is the MX-9920?" PURE.

Where the documents hold MX-9920-W and MX-9920-D and no MX-9920, the reader is asked which. A question about the family
itself ("Which MX-9920 pumps are there?") is left alone.
"""

from __future__ import annotations

import re

from retrieval.reformulation.spelling import Vocabulary, code_spans
from retrieval.reformulation.subjects import Token, tokens_of
from retrieval.reformulation.words import LEXICONS

MOST_CHOICES = 5
_SHORTEST_NUMBER = 3
_OF_THE_FAMILY = re.compile(
    r"\b(?:how many|hoeveel|are there|zijn er|exist|bestaan|all|alle|every|each|elke|list|lijst|compare|vergelijk"
    r"|differences?|verschil(?:len)?|series?|family|familie|range|reeks|models?|modellen|types?|versions?|versies?"
    r"|variants?|varianten|kinds?|soorten|uitvoeringen)\b",
    re.I,
)
_PREPOSITIONS = frozenset().union(*(lexicon.prepositions for lexicon in LEXICONS.values()))


def find_choices(question: str, vocabulary: Vocabulary) -> tuple[tuple[str, str], ...]:
    """At most five of the things that may be meant: the name of each, and the question with it in place.

    Empty for a question that names one thing, none, or the family on purpose.
    """
    if not any(character.isdigit() for character in question) or _OF_THE_FAMILY.search(question):
        return ()
    spans = code_spans(question)
    written = vocabulary.written(sorted(set(spans.values()))) if spans else {}
    exact = [span for span, code in spans.items() if code in written]
    for start, end, code in (*_longest_first(spans), *_numbers(question)):
        if any(first <= start and end <= last for first, last in exact) or _is_plural(question, end):
            continue
        codes = vocabulary.codes_with(code)
        if len(codes) > 1:
            return tuple((each, f"{question[:start]}{each}{question[end:]}") for each in codes[:MOST_CHOICES])
    return ()


def _longest_first(spans: dict[tuple[int, int], str]) -> list[tuple[int, int, str]]:
    ordered = sorted(spans.items(), key=lambda item: (item[0][0] - item[0][1], item[0][0]))
    return [(start, end, code) for (start, end), code in ordered]


def _numbers(question: str) -> list[tuple[int, int, str]]:
    """The numbers that can be a name ("the 9920"): not an amount, nor a year behind a preposition."""
    tokens = tokens_of(question)
    return [
        (token.start, token.end, token.text)
        for place, token in enumerate(tokens)
        if token.text.isdigit() and len(token.text) >= _SHORTEST_NUMBER and _can_be_named(tokens, place)
    ]


def _can_be_named(tokens: list[Token], place: int) -> bool:
    return place > 0 and tokens[place - 1].is_word and tokens[place - 1].lower not in _PREPOSITIONS


def _is_plural(question: str, end: int) -> bool:
    """Whether a plural follows: "the MX-9920 pumps" are the family."""
    following = re.match(r"\s+(\w+)", question[end:])
    return following is not None and len(following[1]) > 3 and following[1].endswith("s")
