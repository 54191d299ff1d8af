"""What an answer is checked against: passages cut into sentences, and where the words of an assertion stand. PURE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from chat.answering.assertions import Assertion
from chat.answering.words import numbers_held, pairs, stems_in_order
from retrieval.text.sentences import split_sentences

PHRASE_REACH = 2
"""Two words stand together when at most one other that carries meaning is between them."""

_WORD = re.compile(r"\w")
_EDGES = " \t\n*_`#>-•"


@dataclass(frozen=True)
class EvidenceSentence:
    """``text`` stands at [start, end) of whatever the passage was cut from. ``context`` is what it is read with (a
    heading, the head of a table) and may be empty.
    """

    text: str
    start: int
    end: int
    context: str = ""

    @cached_property
    def _stems_in_order(self) -> tuple[str, ...]:
        return stems_in_order(self.context) + stems_in_order(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(self._stems_in_order)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        return frozenset(pairs(self._stems_in_order, PHRASE_REACH))


@dataclass(frozen=True)
class EvidencePassage:
    """A numbered passage. ``title`` holds what is known of the whole of it: its document and section."""

    marker: int
    text: str
    sentences: tuple[EvidenceSentence, ...]
    title: str = ""

    @cached_property
    def title_stems(self) -> frozenset[str]:
        return frozenset(stems_in_order(self.title))

    @cached_property
    def stems(self) -> frozenset[str]:
        return self.title_stems.union(*(sentence.stems for sentence in self.sentences))

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        return frozenset().union(*(sentence.pairs for sentence in self.sentences))

    @cached_property
    def numbers(self) -> frozenset[str]:
        texts = (f"{sentence.context} {sentence.text}" for sentence in self.sentences)
        return numbers_held(self.title).union(*map(numbers_held, texts))

    def holds_verbatim(self, words: str) -> bool:
        """Whether the words stand in the text, but for white space, and not as parts of longer ones."""
        text = " ".join(self.text.split())
        at = text.find(words)
        while at >= 0:
            if not _WORD.match(text[at - 1 : at]) and not _WORD.match(text, at + len(words)):
                return True
            at = text.find(words, at + 1)
        return False


def cut_passage(marker: int, text: str, title: str = "") -> EvidencePassage:
    """A passage of bare text; its sentences' offsets are the text's."""
    sentences = tuple(
        EvidenceSentence(text[start:end], start, end) for start, end, _ in split_sentences(text, 0, len(text))
    )
    return EvidencePassage(marker, text, sentences, title)


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """A sentence of a passage, and the share of an assertion's weight in words that it holds, 0 to 1."""

    passage: EvidencePassage
    sentence: EvidenceSentence
    share: float


class AssertionCheck:
    """Where the words of an assertion stand in the passages that it is checked against.

    ``weigh`` gives a stem's weight. ``weights`` are those of the assertion's stems.
    """

    def __init__(
        self, assertion: Assertion, passages: Sequence[EvidencePassage], weigh: Callable[[str], float]
    ) -> None:
        self.assertion = assertion
        self.passages = passages
        self.weights = {word.stem: weigh(word.stem) for word in assertion.words}
        self._total = sum(self.weights.values())
        self.stems: frozenset[str] = frozenset().union(*(passage.stems for passage in passages))
        # By their numbers among the assertion's words.
        self.missing_words = [at for at, word in enumerate(assertion.words) if word.stem not in self.stems]

    @cached_property
    def matches(self) -> list[SentenceMatch]:
        """All sentences, those first that hold most of the assertion's weight; ties in the order of the text."""
        matches = [
            SentenceMatch(passage, sentence, self._share_of(sentence.stems))
            for passage in self.passages
            for sentence in passage.sentences
        ]
        return sorted(matches, key=lambda match: -match.share)

    @cached_property
    def verbatim_match(self) -> SentenceMatch | None:
        """Where the assertion stands word for word, but for white space and markup at its ends; None where it does
        not."""
        words = " ".join(self.assertion.text.strip(_EDGES).split())
        holders = {passage.marker for passage in self.passages if passage.holds_verbatim(words)}
        return next((match for match in self.matches if match.passage.marker in holders), None) if holders else None

    def share_of_best_pair(self) -> float:
        """The largest share of the assertion's weight that two sentences in a row hold, their passage's title included.

        Two sentences, because what one calls by its name the next calls "it".
        """
        shares = (
            self._share_of(passage.title_stems.union(*(each.stems for each in passage.sentences[at : at + 2])))
            for passage in self.passages
            for at in range(len(passage.sentences))
        )
        return max(shares, default=0.0)

    def _share_of(self, stems: frozenset[str]) -> float:
        return sum(self.weights[stem] for stem in self.weights.keys() & stems) / self._total
