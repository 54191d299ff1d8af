"""What an answer is held against: passages, cut into the sentences that a claim is compared with. PURE."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from chat.grounding.support.numbers import numbers_held
from chat.grounding.support.words import pairs, words_of
from retrieval.text.sentences import split_sentences

PHRASE_REACH = 2
"""Two words stand together when at most one other that carries meaning is between them."""


@dataclass(frozen=True, slots=True)
class EvidenceSentence:
    """``text`` stands at [start, end) of whatever the passage was cut from. ``context`` is what it is read with (a
    heading, the head of a table) and may be empty.
    """

    text: str
    start: int
    end: int
    context: str = ""
    stems: frozenset[str] = field(init=False, compare=False, repr=False)
    numbers: frozenset[str] = field(init=False, compare=False, repr=False)
    pairs: frozenset[tuple[str, str]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        order = [word.stem for word in words_of(f"{self.context} {self.text}")]
        object.__setattr__(self, "stems", frozenset(order))
        object.__setattr__(self, "numbers", numbers_held(f"{self.context} {self.text}"))
        object.__setattr__(self, "pairs", frozenset(pairs(order, PHRASE_REACH)))


@dataclass(frozen=True, slots=True)
class EvidencePassage:
    """A numbered passage. ``title`` holds what is known of the whole of it: its document and section.

    ``stems`` and ``numbers`` are those of the sentences and the title, ``pairs`` those of the sentences.
    """

    marker: int
    text: str
    sentences: tuple[EvidenceSentence, ...]
    title: str = ""
    title_stems: frozenset[str] = field(init=False, compare=False, repr=False)
    title_numbers: frozenset[str] = field(init=False, compare=False, repr=False)
    stems: frozenset[str] = field(init=False, compare=False, repr=False)
    numbers: frozenset[str] = field(init=False, compare=False, repr=False)
    pairs: frozenset[tuple[str, str]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        title = frozenset(word.stem for word in words_of(self.title))
        title_numbers = numbers_held(self.title)
        object.__setattr__(self, "title_stems", title)
        object.__setattr__(self, "title_numbers", title_numbers)
        object.__setattr__(self, "stems", title.union(*(sentence.stems for sentence in self.sentences)))
        object.__setattr__(self, "numbers", title_numbers.union(*(sentence.numbers for sentence in self.sentences)))
        object.__setattr__(self, "pairs", frozenset().union(*(sentence.pairs for sentence in self.sentences)))


def passage_of(marker: int, text: str, title: str = "") -> EvidencePassage:
    """A passage of bare text; its sentences' offsets are the text's."""
    cut = tuple(EvidenceSentence(text[start:end], start, end) for start, end, _ in split_sentences(text, 0, len(text)))
    return EvidencePassage(marker, text, cut, title)


class Evidence:
    """Passages in the order in which they were given, and how much each word tells among their sentences."""

    def __init__(self, passages: Sequence[EvidencePassage]) -> None:
        self.passages = tuple(passages)
        self._sentences = sum(len(passage.sentences) for passage in passages)
        self._held = Counter(stem for passage in passages for sentence in passage.sentences for stem in sentence.stems)

    def weight(self, stem: str) -> float:
        """More for a rare word than for a common one, and most for one that no sentence holds."""
        return math.log1p((self._sentences + 1) / (0.5 + self._held[stem]))
