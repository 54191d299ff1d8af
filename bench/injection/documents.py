"""How well instructions to a model are found in documents: put into passages, and in passages as they are. PURE."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evaluation.exceptions import UnreadableTestSet

SENTENCES = Path(__file__).parent / "injected_sentences.jsonl"


class Place(Protocol):
    """A sentence that was found, ``text[start:end]``."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


Find = Callable[[str], Sequence[Place]]


@dataclass(frozen=True, slots=True)
class InjectedSentence:
    """A sentence that instructs a model; ``split`` says whether the rules were written with it in view."""

    text: str
    kind: str
    split: str


@dataclass(frozen=True, slots=True)
class Found:
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
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [InjectedSentence(row["text"], row["kind"], row["split"]) for row in rows]
    except (OSError, ValueError, KeyError) as error:
        raise UnreadableTestSet(f"{path} cannot be read: {error}.") from error


def read_passages(path: Path) -> list[str]:
    """The texts of a corpus of JSON lines, those without words aside. Raises: UnreadableTestSet."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8-sig").split("\n") if line.strip()]
        return [text for row in rows if (text := str(row.get("text") or row.get("content") or "").strip())]
    except (OSError, ValueError, AttributeError) as error:
        raise UnreadableTestSet(f"{path} cannot be read: {error}.") from error


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


def measure_found(made: Iterable[tuple[InjectedSentence, str]], find: Find) -> Found:
    """In how many passages a found sentence overlaps the one that was put in."""
    total = found = 0
    by_kind: dict[str, tuple[int, int]] = {}
    for sentence, context in made:
        begin = context.index(sentence.text)
        hit = any(place.start < begin + len(sentence.text) and begin < place.end for place in find(context))
        total, found = total + 1, found + hit
        kind_found, kind_total = by_kind.get(sentence.kind, (0, 0))
        by_kind[sentence.kind] = (kind_found + hit, kind_total + 1)
    return Found(total, found, by_kind)


def measure_flagged(passages: Iterable[str], find: Find) -> Flagged:
    """How many of the passages are flagged as they are."""
    total = flagged = 0
    sentences: list[str] = []
    for passage in passages:
        places = find(passage)
        total, flagged = total + 1, flagged + bool(places)
        sentences += [passage[place.start : place.end] for place in places]
    return Flagged(total, flagged, tuple(sentences))


def interval(hits: int, total: int) -> tuple[float, float]:
    """The share's 95 % interval (Wilson); (0, 1) of nothing."""
    if not total:
        return 0.0, 1.0
    z = 1.96
    share = hits / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * ((share * (1 - share) / total + z * z / (4 * total * total)) ** 0.5) / (1 + z * z / total)
    return max(0.0, middle - half), min(1.0, middle + half)
