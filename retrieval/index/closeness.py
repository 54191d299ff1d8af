"""Convert cosines of vectors to a common scale, so that one threshold fits every embedder.

A calibration converts a cosine to *closeness*: 0 for an unrelated passage, 1 for a typical passage that answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from django.db import DatabaseError

from retrieval.exceptions import CalibrationFailed
from retrieval.index import embedder_choice
from retrieval.models import Chunk, EmbedderCalibration
from retrieval.text.chunking import build_embedding_text

if TYPE_CHECKING:
    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

CALIBRATION_VERSION = 2
"""Raise this number when a calibration has other figures. Stored ones must then be computed again."""
KEPT_SECONDS = 30.0

MOST_PASSAGES, FEWEST_PASSAGES = 240, 40
BATCH = 16
LEAST_SEPARATION = 0.7
"""Share of questions that must be closer to their own passage than to another. Otherwise the embedder is unusable."""

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Typical cosines of an embedder's vectors.

    - ``unrelated``: of a question and an unrelated passage.
    - ``answering``: of a question and the passage that answers it.
    - ``unrelated_texts``: of two unrelated passages.
    - ``across_languages``: whether these cosines also apply to texts in different languages.
    - ``vector_weight``: the vectors' share of a passage's score; None if the search method decides.
    """

    unrelated: float
    answering: float
    unrelated_texts: float
    across_languages: bool = False
    vector_weight: float | None = None

    def convert_to_closeness(self, cosine: float) -> float:
        """Return the closeness of a question and a passage, from their cosine.

        The closeness is 0 for an unrelated passage, and 1 for a typical answer. It may be below 0 or above 1.
        """
        return (cosine - self.unrelated) / (self.answering - self.unrelated)

    def convert_to_likeness(self, cosine: float) -> float:
        """Return the likeness of two texts, from their cosine.

        The likeness is 0 for unrelated texts, and 1 for equal texts. It may be negative.
        """
        return (cosine - self.unrelated_texts) / (1.0 - self.unrelated_texts)

    def convert_to_cosine(self, likeness: float) -> float:
        return self.unrelated_texts + likeness * (1.0 - self.unrelated_texts)


E5 = Calibration(unrelated=0.796, answering=0.874, unrelated_texts=0.813, across_languages=True)
# ``answering`` is higher than the measured .46, so that the site refuses as many questions as with
# multilingual-e5-small.
MINILM = Calibration(unrelated=0.05, answering=0.60, unrelated_texts=0.08)
BUILT_IN = {"multilingual-e5-small/int8": E5, "all-MiniLM-L6-v2/int8": MINILM}


_kept: dict[str, tuple[float, Calibration | None]] = {}
forget_calibrations = _kept.clear


def find_current_calibration() -> Calibration | None:
    """Return the calibration of the site's embedder; None, with a logged warning, if none is stored."""
    return find_calibration(embedder_choice.get_embedder().name)


def find_calibration(embedder: str) -> Calibration | None:
    if embedder in BUILT_IN:
        return BUILT_IN[embedder]
    until, found = _kept.get(embedder, (0.0, None))
    if time.monotonic() >= until:
        found = read_calibration(embedder)
        if found is None:
            logger.warning("%s", describe_missing_calibration(embedder))
        _kept[embedder] = time.monotonic() + KEPT_SECONDS, found
    return found


def find_uncalibrated_embedder() -> str:
    return "" if find_current_calibration() is not None else embedder_choice.get_embedder().name


def describe_missing_calibration(embedder: str) -> str:
    return (
        f"No thresholds were fitted for the embedder {embedder}: whether documents answer a question and support a "
        "sentence is judged by words alone, and relevancy is not judged. Run `manage.py fit_thresholds`."
    )


def read_calibration(embedder: str) -> Calibration | None:
    try:
        row = EmbedderCalibration.objects.filter(name=embedder, scale_version=CALIBRATION_VERSION).first()
        return Calibration(**row.scales) if row is not None else None
    except (DatabaseError, TypeError) as error:
        logger.warning("The calibration of %s could not be read: %s", embedder, error)
        return None


@dataclass(frozen=True, slots=True)
class CalibrationFit:
    """A calibration that was computed for an embedder.

    ``separation`` is the share of questions that are closer to their own passage than to one unrelated passage.
    """

    name: str
    passages: int
    calibration: Calibration
    separation: float


def fit_thresholds(report: Report, *, across_languages: bool = False) -> CalibrationFit:
    """Compute the :class:`Calibration` of the site's embedder from stored passages and their questions, and store it.

    ``across_languages`` is stored too. Raises: EmbeddingFailed; CalibrationFailed for a built-in embedder, for too few
    passages, or if ``separation`` is too low.
    """
    embedder = embedder_choice.get_embedder()
    if embedder.name in BUILT_IN:
        raise CalibrationFailed("The thresholds of a built-in model are shipped: there is nothing to fit.")
    material = _load_calibration_pairs()
    if len(material) < FEWEST_PASSAGES:
        raise CalibrationFailed(
            f"There are {len(material)} passages with a question or a heading, and fitting needs {FEWEST_PASSAGES}: "
            "read more documents first."
        )
    vectors: list[Vectors] = []
    questions: list[Vectors] = []
    for first in range(0, len(material), BATCH):
        batch = material[first : first + BATCH]
        vectors += list(embedder.embed_documents([text for text, _ in batch]))
        questions += [embedder.embed_query(question) for _, question in batch]
        report(embedder.name, len(vectors), len(material))
    passages, asked = np.stack(vectors), np.stack(questions)
    # The passages are sorted by hash, so neighbours are unrelated.
    own = np.einsum("ij,ij->i", asked, passages)
    other = np.einsum("ij,ij->i", asked, np.roll(passages, 1, axis=0))
    texts = np.einsum("ij,ij->i", passages, np.roll(passages, 1, axis=0))
    separation = float((own > other).mean())
    if separation < LEAST_SEPARATION:
        raise CalibrationFailed(
            f"The vectors of {embedder.name} do not tell the passage that answers a question from another one: the "
            f"right one is nearer for {separation:.0%} of the questions."
        )
    unrelated, answering, unrelated_texts = (float(np.median(cosines)) for cosines in (other, own, texts))
    fitted = Calibration(unrelated, answering, unrelated_texts, across_languages)
    store_calibration(embedder.name, fitted, len(material))
    return CalibrationFit(embedder.name, len(material), fitted, separation)


def store_calibration(name: str, fitted: Calibration, passages: int | None = None) -> None:
    """Store an embedder's calibration. If ``passages`` is None, the stored number of passages stays."""
    how: dict[str, object] = {"scale_version": CALIBRATION_VERSION, "scales": asdict(fitted)}
    if passages is not None:
        how["passages"] = passages
    EmbedderCalibration.objects.update_or_create(name=name, defaults=how)
    forget_calibrations()


def _load_calibration_pairs() -> list[tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    chunks = Chunk.objects.select_related("document").order_by("content_hash", "pk")
    wanted = chunks.only("content", "content_hash", "heading_path", "canonical_questions", "document__title")
    for chunk in wanted.iterator(chunk_size=200):
        if len(found) == MOST_PASSAGES:
            break
        question = next(iter(chunk.canonical_questions), "") or next(iter(reversed(chunk.heading_path)), "")
        if question and chunk.content_hash not in found:
            text = build_embedding_text(chunk.document.title, chunk.heading_path, chunk.content)
            found[chunk.content_hash] = text, question
    return list(found.values())
