"""How near the units of the context come to a question in meaning. PURE.

Of passages whose token signs are stored, the tokens of each unit are told by their places; their mean is the unit's
vector. They were read in the pass over their whole passage, so that "it" is near to what it stands for. All
similarities are on the scale that thresholds are on, by the embedder's calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrieval.dense.calibration.scales import BUILT_IN, Compared

if TYPE_CHECKING:
    from chat.grounding.evidence.units import QuotableUnit
    from chat.types import ContextSource
    from retrieval.dense.calibration.scales import Calibration
    from retrieval.dense.token_vectors import PassageTokens, TokenEncoding
    from retrieval.types import Vectors


@dataclass(frozen=True, slots=True, eq=False)
class Closeness:
    """Of each unit its unit vector, shape (units, dimension), and the cosine with the question's, shape (units,).

    ``nearest``, shape (pieces, units), is the similarity of each of the question's ``pieces`` that tell something to
    the nearest token of each unit; no pieces, where the embedder gives no token vectors.

    ``refine`` puts what some of the units are, read alone, in the place of what their passages tell of them; None where
    that is known already.
    """

    vectors: Vectors
    similarities: Vectors
    pieces: Sequence[str]
    nearest: Vectors
    refine: Callable[[Sequence[int]], None] | None = None


Compare = Callable[[str, Sequence["QuotableUnit"]], Closeness | None]
"""The closeness of units to a question; None when no vectors can be had."""


def compare_encodings(
    question: TokenEncoding, units: Sequence[TokenEncoding], calibration: Calibration = BUILT_IN
) -> Closeness:
    """The closeness of units that were encoded one by one."""
    vectors = np.array([unit.vector for unit in units], np.float32)
    pieces, asked = _telling(question)
    nearest = np.zeros((len(pieces), len(units)), np.float32)
    for column, unit in enumerate(units):
        if len(pieces) and len(unit.token_vectors):
            nearest[:, column] = (asked @ unit.token_vectors.T).max(axis=1)
    similarities = calibration.scale(Compared.QUESTION_TEXT)(vectors @ question.vector)
    return Closeness(vectors, similarities, pieces, calibration.scale(Compared.QUESTION_TOKENS)(nearest))


class SourceTokens:
    """The tokens of the sources of an answer, by their places. ``tokens_of`` has those of each passage, by chunk id."""

    def __init__(
        self,
        sources: Sequence[ContextSource],
        tokens_of: Mapping[int, PassageTokens],
        calibration: Calibration = BUILT_IN,
    ) -> None:
        self._calibration = calibration
        self._tokens_of = {
            passage.chunk_id: tokens_of[passage.chunk_id] for source in sources for passage in source.block.passages
        }
        self._first_row: dict[int, int] = {}
        rows = 0
        for pk, tokens in self._tokens_of.items():
            self._first_row[pk] = rows
            rows += len(tokens.signs)
        signs = [tokens.signs for tokens in self._tokens_of.values()]
        self._signs = np.concatenate(signs) if signs else np.zeros((0, 0), np.uint8)

    def compare(self, question: TokenEncoding, units: Sequence[QuotableUnit]) -> Closeness:
        """The closeness of the units, each with its heading and the head of its table."""
        pieces, asked = _telling(question)
        vectors = np.zeros((len(units), len(question.vector)), np.float32)
        nearest = np.zeros((len(pieces), len(units)), np.float32)
        rows_of = [self._rows_of_unit(unit) for unit in units]
        filled = [number for number, rows in enumerate(rows_of) if rows]
        if filled:
            tokens = self._vectors([row for number in filled for row in rows_of[number]])
            starts = np.cumsum([0, *(len(rows_of[number]) for number in filled[:-1])])
            sums = np.add.reduceat(tokens, starts, axis=0)
            vectors[filled] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
            if len(pieces):
                closest = np.maximum.reduceat(asked @ tokens.T, starts, axis=1)
                nearest[:, filled] = self._calibration.scale(Compared.QUESTION_SIGNS)(closest)
        similarities = np.zeros(len(units), np.float32)
        similarities[filled] = self._calibration.scale(Compared.QUESTION_MEAN)(vectors[filled] @ question.vector)
        return Closeness(vectors, np.minimum(similarities, 1.0), pieces, np.minimum(nearest, 1.0))

    def vectors_within(self, source: ContextSource, start: int, end: int) -> Vectors:
        """The signs of the tokens between two places of the document as unit vectors, shape (tokens, dimension)."""
        return self._vectors(self._rows_within(source, start, end))

    def _rows_of_unit(self, unit: QuotableUnit) -> list[int]:
        rows = self._rows_within(unit.source, unit.start, unit.end)
        holder = next(
            (each for each in unit.source.block.passages if each.start < unit.end and unit.start < each.end), None
        )
        if holder is not None:
            tokens, first = self._tokens_of[holder.chunk_id], self._first_row[holder.chunk_id]
            for heading in (unit.heading, unit.table_head.split("\n", 1)[0]):
                rows += [first + at for at in tokens.naming(heading)]
        return rows

    def _rows_within(self, source: ContextSource, start: int, end: int) -> list[int]:
        rows: list[int] = []
        for passage in source.block.passages:
            if passage.start < end and start < passage.end:
                first = self._first_row[passage.chunk_id]
                within = self._tokens_of[passage.chunk_id].within(start - passage.start, end - passage.start)
                rows += range(first + within.start, first + within.stop)
        return rows

    def _vectors(self, rows: Sequence[int]) -> Vectors:
        if not rows:
            return np.zeros((0, self._signs.shape[1] * 8), np.float32)
        bits = np.unpackbits(self._signs[np.asarray(rows)], axis=1)
        signed: Vectors = bits.astype(np.float32) * 2 - 1
        return signed / np.float32(np.sqrt(bits.shape[1]))


def _telling(question: TokenEncoding) -> tuple[list[str], Vectors]:
    """The question's pieces that tell something, all where none does, and their vectors."""
    telling = question.tokens.telling() if len(question.tokens.pieces) else np.zeros(0, bool)
    if not telling.any():
        telling[:] = True
    pieces = [piece.removeprefix("##") for piece, tells in zip(question.tokens.pieces, telling, strict=True) if tells]
    return pieces, question.token_vectors[telling]
