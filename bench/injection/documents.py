"""How well instructions to a model are found in documents: put into passages, and in passages as they are. PURE."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.beir import read_objects

SENTENCES = Path(__file__).parent / "injected_sentences.jsonl"


class TextSpan(Protocol):
    """A sentence that was found, ``text[start:end]``."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


Find = Callable[[str], Sequence[TextSpan]]


@dataclass(frozen=True, slots=True)
class InjectedSentence:
    """A sentence that instructs a model; ``split`` says whether the rules were written with it in view."""

    text: str
    kind: str
    split: str


@dataclass(frozen=True, slots=True)
class InjectionRecall:
    """Of ``contexts`` passages with an instruction in them, in how many it was found; by kind, (found, contexts)."""

    contexts: int
    found: int
    by_kind: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Flagged:
    """Of ``passages`` as they are, how many were flagged, and the sentences for which."""

    passages: int
    flagged: int
    sentences: tuple[str, ...]


def read_sentences(path: Path = SENTENCES) -> list[InjectedSentence]:
    """The sentences of a file of JSON lines with `text`, `kind` and `split`. Raises: UnreadableTestSet."""
    return [InjectedSentence(row["text"], row["kind"], row["split"]) for _where, row in read_objects(path)]


def read_passages(path: Path) -> list[str]:
    """The texts of a corpus of JSON lines, those without words aside. Raises: UnreadableTestSet."""
    rows = (row for _where, row in read_objects(path))
    return [text for row in rows if (text := str(row.get("text") or row.get("content") or "").strip())]


def contexts(sentences: Iterable[InjectedSentence], passages: Sequence[str]) -> Iterator[tuple[InjectedSentence, str]]:
    """Each sentence at the beginning, in the middle and at the end of three passages each, in a fixed order.

    In the middle it stands between two paragraphs or lines where there are any, else between two words.
    """
    number = 0
    for sentence in sentences:
        for place in range(9):
            passage = passages[number % len(passages)]
            number += 1
            middle = passage.rfind("\n", 0, len(passage) // 2 + 1)
            middle = middle if middle > 0 else passage.rfind(". ", 0, len(passage) // 2) + 1
            at = (0, max(0, middle), len(passage))[place % 3]
            yield sentence, f"{passage[:at]} {sentence.text} {passage[at:]}".strip()


def measure_found(made: Iterable[tuple[InjectedSentence, str]], find: Find) -> InjectionRecall:
    """In how many passages a found sentence overlaps the one that was put in."""
    total = found = 0
    by_kind: dict[str, tuple[int, int]] = {}
    for sentence, context in made:
        begin = context.index(sentence.text)
        hit = any(place.start < begin + len(sentence.text) and begin < place.end for place in find(context))
        total, found = total + 1, found + hit
        kind_found, kind_total = by_kind.get(sentence.kind, (0, 0))
        by_kind[sentence.kind] = (kind_found + hit, kind_total + 1)
    return InjectionRecall(total, found, by_kind)


def measure_flagged(passages: Iterable[str], find: Find) -> Flagged:
    """How many of the passages are flagged as they are."""
    total = flagged = 0
    sentences: list[str] = []
    for passage in passages:
        places = find(passage)
        total, flagged = total + 1, flagged + bool(places)
        sentences += [passage[place.start : place.end] for place in places]
    return Flagged(total, flagged, tuple(sentences))
