"""Whether two questions ask the same. PURE.

They do when they agree but for capitals and punctuation, or when they are very like each other: by their cosine, the
same question word, and the same numbers and codes. docs/quality.md has how often that is right.
"""

from __future__ import annotations

import re
import unicodedata

LEAST_LIKENESS = 0.9
"""Of two questions, on the embedder's scale of texts: a cosine of 0.981 with multilingual-e5-small."""

_QUESTION_WORDS = (
    (
        "when",
        re.compile(
            r"\b(?:when|(?:what|which) (?:year|date|day|time|century|decade)"
            r"|wanneer|welke? (?:jaar|datum|dag)|hoe laat)\b",
            re.IGNORECASE,
        ),
    ),
    ("who", re.compile(r"\b(?:who|whom|whose|wie|wiens)\b", re.IGNORECASE)),
    ("where", re.compile(r"\b(?:where|waar|waarheen|waarvandaan)\b", re.IGNORECASE)),
    ("why", re.compile(r"\b(?:why|waarom)\b", re.IGNORECASE)),
    (
        "how many",
        re.compile(
            r"\b(?:how (?:many|much|long|often|old|far|wide|high|tall|big|large|deep|fast|heavy)"
            r"|hoeveel|hoe (?:lang|vaak|oud|ver|breed|hoog|groot|diep|zwaar|snel))\b",
            re.IGNORECASE,
        ),
    ),
    ("how", re.compile(r"\b(?:how|hoe)\b", re.IGNORECASE)),
)
_WORD = re.compile(r"\w+")


def normalize(question: str) -> str:
    """The words of a question in lower case, without punctuation: wordings that agree in it are the same."""
    words = _WORD.findall(unicodedata.normalize("NFKC", question).casefold())
    return " ".join(words) or " ".join(question.split())


def ask_alike(one: str, other: str) -> bool:
    """Whether two questions have the same question word (or none), and the same numbers and codes."""
    return _kind(one) == _kind(other) and _codes(one) == _codes(other)


def _kind(question: str) -> str:
    found = [
        (match.start(), place, kind)
        for place, (kind, word) in enumerate(_QUESTION_WORDS)
        if (match := word.search(question))
    ]
    return min(found)[2] if found else ""


def _codes(question: str) -> frozenset[str]:
    words = _WORD.findall(question.casefold())
    return frozenset(word for word in words if any(character.isdigit() for character in word))
