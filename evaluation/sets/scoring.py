"""Where in a ranking the passages stand that a question should find. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expected passage among the passages that there are now.

    ``chunk_ids`` are those that hold its words. A ``whole`` document is found with any of its passages. What has no
    ``document_id``, or is not whole and has no chunk, is gone: it can never be found.
    """

    key: int
    grade: int
    document_id: int | None
    chunk_ids: frozenset[int] = frozenset()
    whole: bool = False

    @property
    def is_resolved(self) -> bool:
        return self.document_id is not None and (self.whole or bool(self.chunk_ids))


@dataclass(frozen=True, slots=True)
class JudgedRanking:
    """A ranking as `evaluation.statistics` takes it and the rank of each expectation in it, None where it is absent."""

    ranking: tuple[str, ...]
    grades: dict[str, int]
    ranks: dict[int, int | None]


def judged_ranking(found: Sequence[tuple[int, int]], expectations: Sequence[Expectation]) -> JudgedRanking:
    """The (chunk id, document id) pairs that were ``found``, best first, as units that each appear once.

    Chunks that hold the same expected passage are one unit, which stands where the best of them does, and so are
    expected passages that share a chunk, or a document expected whole. Where only whole documents are expected,
    documents are ranked, each by its best chunk, as BEIR's figures assume. What is gone counts among the grades: not to
    find it is a loss.
    """
    unit_of_chunk: dict[int, str] = {}
    unit_of_document: dict[int, str] = {}
    unit_of_key: dict[int, str] = {}
    grades: dict[str, int] = {}
    # Whole documents first: a passage of one of them is found with it, and it with the passage.
    for one in sorted(expectations, key=lambda one: not one.whole):
        unit = f"expected {one.key}"
        if not one.is_resolved:
            pass
        elif one.whole and one.document_id is not None:
            unit = unit_of_document.setdefault(one.document_id, unit)
        elif one.document_id in unit_of_document:
            unit = unit_of_document[one.document_id]
        else:
            unit = next((unit_of_chunk[chunk] for chunk in sorted(one.chunk_ids) if chunk in unit_of_chunk), unit)
            for chunk in one.chunk_ids:
                unit_of_chunk.setdefault(chunk, unit)
        unit_of_key[one.key] = unit
        grades[unit] = max(one.grade, grades.get(unit, 0))
    by_document = all(one.whole for one in expectations)
    ranking: dict[str, None] = {}
    for chunk, document in found:
        other = f"document {document}" if by_document else f"chunk {chunk}"
        ranking.setdefault(unit_of_chunk.get(chunk) or unit_of_document.get(document, other))
    rank_of_unit = {unit: rank for rank, unit in enumerate(ranking, start=1)}
    ranks = {key: rank_of_unit.get(unit) for key, unit in unit_of_key.items()}
    return JudgedRanking(tuple(ranking), grades, ranks)
