"""An embedder's cosines over pairs of texts: near ones, of one passage, and ones that have nothing in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrieval.dense.calibration.scales import Compared, Sample

if TYPE_CHECKING:
    from retrieval.dense.calibration.material import FittingPassage
    from retrieval.protocols import TextEmbedder
    from retrieval.types import Vectors

Report = Callable[[int, int], None]

BATCH = 16
# How far off in the list the passages are that a text is compared with, beside its own.
OTHERS = (1, 7)
# A sentence is compared with itself too, so that the upper end of each scale is seen.
SELF_EVERY = 4


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """The unit vectors of a question and of the sentences, each encoded alone."""

    question: Vectors
    sentences: tuple[Vectors, ...]


def encode_material(passages: Sequence[FittingPassage], embedder: TextEmbedder, report: Report) -> list[EncodedPassage]:
    """Each passage encoded as it would be for an answer. Raises: EmbeddingFailed."""
    encoded: list[EncodedPassage] = []
    for first in range(0, len(passages), BATCH):
        batch = passages[first : first + BATCH]
        vectors = iter(embedder.embed_documents([text for each in batch for text in each.sentence_texts()]))
        encoded += [
            EncodedPassage(embedder.embed_query(each.question), tuple(next(vectors) for _ in each.sentences))
            for each in batch
        ]
        report(len(encoded), len(passages))
    return encoded


def sample(encoded: Sequence[EncodedPassage]) -> Sample:
    """The cosines of each question and each sentence with sentences of its own passage, and of others in the list."""
    found: dict[Compared, list[Vectors]] = {each: [] for each in Compared}
    for number, passage in enumerate(encoded):
        for other in (passage, *(encoded[(number + step) % len(encoded)] for step in OTHERS)):
            for vector in other.sentences:
                found[Compared.QUESTION_TEXT].append(np.atleast_1d(passage.question @ vector))
            for place, vector in enumerate(passage.sentences):
                target = (place + 1) % len(other.sentences)
                if other is passage and number % SELF_EVERY == 0:
                    target = place
                elif other is passage and len(passage.sentences) == 1:
                    continue
                found[Compared.TEXTS].append(np.atleast_1d(vector @ other.sentences[target]))
    return {
        each: np.concatenate(cosines).astype(np.float32) if cosines else np.zeros(0, np.float32)
        for each, cosines in found.items()
    }


def separation(encoded: Sequence[EncodedPassage]) -> float:
    """How well the cosines tell the sentences of a question's own passage from those of another: the probability that
    the nearest one of its own is nearer than the nearest of another (the area under the ROC curve)."""
    own = [max(float(each.question @ vector) for vector in each.sentences) for each in encoded]
    others = []
    for number, each in enumerate(encoded):
        other = encoded[(number + OTHERS[0]) % len(encoded)]
        others.append(max(float(each.question @ vector) for vector in other.sentences))
    ranks = np.sort(np.array(others))
    below = np.searchsorted(ranks, own, "left") + np.searchsorted(ranks, own, "right")
    return float(below.mean() / 2 / len(ranks))
