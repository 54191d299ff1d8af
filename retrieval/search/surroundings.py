"""What stands around a hit and belongs to it: the rest of its blocks, and of a short section. PURE.

Neighbours are loaded by their numbers. How many hold a stretch of text is estimated from the length of the passages
that are known, and asked once more where the estimate fell short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil

from retrieval.context import Passage
from retrieval.text.block import BlockKind

Place = tuple[int, int]
LoadNeighbours = Callable[[Iterable[Place]], Mapping[Place, Passage]]

# What is longer is shown in part anyway.
LARGEST_BLOCK_TOKENS = 1_500
LARGEST_SECTION_TOKENS = 700
# The share of a passage's length that the next one is expected to add to it, and the most asked for at once.
_STRIDE = 0.6
_MOST_ASKED = 20


def place_of(passage: Passage) -> Place:
    return passage.document_id, passage.ordinal


class Surroundings:
    """The neighbours of hits, loaded in at most two queries each time."""

    def __init__(self, load_neighbours: LoadNeighbours) -> None:
        self._load_neighbours = load_neighbours
        self._known: dict[Place, Passage] = {}
        self._asked: set[Place] = set()

    def load(self, hits: Sequence[Passage], wanted: Iterable[tuple[Passage, int, int]], expand: int) -> None:
        """Load what lies within ``expand`` places of the hits, and what holds start to end around a wanted passage."""
        self._known.update((place_of(passage), passage) for passage in hits)
        self._asked.update(self._known)
        near = {
            (passage.document_id, passage.ordinal + step) for passage in hits for step in range(-expand, expand + 1)
        }
        ranges = list(wanted)
        self._ask(near.union(*(self._estimate(*each) for each in ranges)))
        self._ask(set().union(*(self._estimate(*each) for each in ranges)))

    def at(self, place: Place) -> Passage | None:
        return self._known.get(place)

    def around(self, passage: Passage, start: int, end: int) -> list[Passage] | None:
        """The neighbours that hold the rest of ``start`` to ``end``; None where they are not all known."""
        before, after = self._walk(passage, -1, start), self._walk(passage, 1, end)
        return None if before is None or after is None else before + after

    def _walk(self, passage: Passage, step: int, edge: int) -> list[Passage] | None:
        passages: list[Passage] = []
        while (passage.start > edge) if step < 0 else (passage.end < edge):
            place = passage.document_id, passage.ordinal + step
            following = self._known.get(place)
            if following is None:
                # Beyond the first and the last passage stands white space.
                return passages if place in self._asked or place[1] < 0 else None
            if (following.end <= edge) if step < 0 else (following.start >= edge):
                break
            passages.append(following)
            passage = following
        return passages

    def _ask(self, places: set[Place]) -> None:
        unknown = {place for place in places - self._asked if place[1] >= 0}
        if unknown:
            self._known.update(self._load_neighbours(unknown))
            self._asked.update(unknown)

    def _estimate(self, passage: Passage, start: int, end: int) -> set[Place]:
        """Places that are not known and likely hold what lies between the passages known and the edges."""
        places: set[Place] = set()
        for step, edge in ((-1, start), (1, end)):
            at = passage
            while (following := self._known.get((at.document_id, at.ordinal + step))) is not None:
                at = following
            missing = at.start - edge if step < 0 else edge - at.end
            if missing > 0:
                number = min(_MOST_ASKED, ceil(missing / max(1.0, _STRIDE * len(at.content))))
                places.update((at.document_id, at.ordinal + step * distance) for distance in range(1, number + 1))
        return places


def find_cut_blocks(passage: Passage) -> list[tuple[int, int]]:
    """The ranges of the blocks that begin before the passage or end after it, but for those too long to be held whole.

    A row of records stands for itself.
    """
    return [
        (block.start, block.end)
        for block in passage.blocks
        if block.kind != BlockKind.RECORDS
        and _is_cut(passage, block.start, block.end)
        and _estimate_tokens(passage, block.start, block.end) <= LARGEST_BLOCK_TOKENS
    ]


def find_cut_sections(passage: Passage) -> list[tuple[int, int]]:
    """The ranges of the short sections that begin before the passage or end after it."""
    sections = {
        (block.start if block.heading_start is None else block.heading_start, block.section_end)
        for block in passage.blocks
        if block.kind != BlockKind.RECORDS
    }
    return [
        (start, end)
        for start, end in sorted(sections)
        if _is_cut(passage, start, end) and _estimate_tokens(passage, start, end) <= LARGEST_SECTION_TOKENS
    ]


def _is_cut(passage: Passage, start: int, end: int) -> bool:
    return start < passage.start or end > passage.end


def _estimate_tokens(passage: Passage, start: int, end: int) -> float:
    return (end - start) * passage.token_count / max(1, len(passage.content))
