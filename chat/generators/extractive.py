"""Answers in the documents' own words: the sentences that answer the question, picked, put in order and cited.

Needs no model beside the embedder, invents nothing, and works offline. It cannot reason over what it finds; it declines
when the best evidence is weak.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import numpy as np
from asgiref.sync import sync_to_async

from chat.evidence import ScoredPart, parts_of, score_parts
from chat.exceptions import NoAnswer
from chat.types import Source
from retrieval import conf

LARGEST_PARTS = 4
# A further part must come this close to the best one, and differ from those picked.
CLOSE_ENOUGH = 0.8
TOO_SIMILAR = 0.93


@dataclass(frozen=True, slots=True)
class EvidenceThreshold:
    """Evidence below which the documents are taken not to answer. docs/quality.md has the figures behind the numbers."""

    score: float = 0.42
    coverage: float = 0.34


class ExtractiveGenerator:
    """An AnswerGenerator without a language model."""

    name = "extractive"

    def __init__(self, threshold: EvidenceThreshold | None = None) -> None:
        self._threshold = threshold or EvidenceThreshold()

    async def stream(self, question: str, sources: Sequence[Source]) -> AsyncIterator[str]:
        """The picked parts, verbatim, one piece each. Raises: NoAnswer."""
        parts = await sync_to_async(self.pick, thread_sensitive=False)(question, sources)
        for number, part in enumerate(parts):
            yield _shown(part, first=number == 0)

    def pick(self, question: str, sources: Sequence[Source]) -> list[ScoredPart]:
        """The parts of the answer, in the order in which they are shown. Raises: NoAnswer."""
        scored = score_parts(question, parts_of(sources), conf.embedder().embed_documents)
        if not scored:
            raise NoAnswer
        best = scored[0]
        coverage = max(part.coverage for part in scored[:LARGEST_PARTS])
        if best.score < self._threshold.score or coverage < self._threshold.coverage:
            raise NoAnswer
        picked: list[ScoredPart] = []
        for candidate in scored:
            if len(picked) == LARGEST_PARTS or candidate.score < CLOSE_ENOUGH * best.score:
                break
            if not any(_says_the_same(candidate, other) for other in picked):
                picked.append(candidate)
        # The best one first, as an answer begins; what supports it follows in reading order.
        rest = sorted(picked[1:], key=lambda part: (part.part.source.marker, part.part.start))
        return [best, *rest]


def _says_the_same(one: ScoredPart, other: ScoredPart) -> bool:
    if one.part.text == other.part.text:
        return True
    if one.vector is None or other.vector is None or one.part.kind == "row":
        return False
    return float(np.dot(one.vector, other.vector)) > TOO_SIMILAR


def _shown(scored: ScoredPart, *, first: bool) -> str:
    part = scored.part
    marker = f"[{part.source.marker}]"
    before = "" if first else "\n\n"
    if part.kind == "row" and part.lead:
        return f"{before}{part.lead}\n{part.text}\n\n{marker}"
    if part.kind == "code":
        return f"{before}{part.text}\n\n{marker}"
    return f"{before}{part.text} {marker}"
