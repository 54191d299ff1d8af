"""Which words a text negates, in English and Dutch. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from chat.grounding.support.words import stems_of

_ENGLISH = "not no never none neither nor without cannot hardly unable"
_DUTCH = "niet geen nooit zonder noch niemand niets nauwelijks"
_NEGATIONS = frozenset([*_ENGLISH.split(), *_DUTCH.split()])
_CONTRACTED = ("n't", "n’t")
_TOKEN = re.compile(r"(?<!\w)\w++(?<=\wn)['’]t(?!\w)|[^\W_]++")
# What counts as near a negation, in words that carry meaning: on either side, where no clear-cut rule exists.
NEAR_AFTER, NEAR_BEFORE = 3, 2
# Words without meaning that may stand between a negation and what it negates ("is not to be").
_GAP = 5


def contradicts(words: AbstractSet[str], text: str, others: AbstractSet[str], other_text: str) -> bool:
    """Whether one of two texts negates a word that the other holds and does not negate.

    ``words`` and ``others`` are the texts' stems. A word counts as negated by what comes right before it; the other
    text must have no negation anywhere near it, because Dutch negates behind the verb as well.
    """
    return bool(
        (negated_words(text) & others) - _near_negation(other_text)
        or (negated_words(other_text) & words) - _near_negation(text)
    )


def negated_words(text: str) -> frozenset[str]:
    """The stem of the first word that carries meaning after each negation."""
    return frozenset(_around(text, after=1, before=0))


def _near_negation(text: str) -> frozenset[str]:
    return frozenset(_around(text, after=NEAR_AFTER, before=NEAR_BEFORE))


def _around(text: str, *, after: int, before: int) -> Iterator[str]:
    tokens = [match.group().lower() for match in _TOKEN.finditer(text)]
    for at, token in enumerate(tokens):
        if token in _NEGATIONS or token.endswith(_CONTRACTED):
            yield from _telling(tokens[at + 1 : at + 1 + _GAP], after)
            yield from _telling(tokens[max(0, at - _GAP + 1) : at][::-1], before)


def _telling(tokens: list[str], count: int) -> Iterator[str]:
    for token in tokens:
        if not count:
            return
        if found := stems_of(token):
            yield from found
            count -= 1
