"""On which scale an embedder's cosines lie, so that one threshold means the same with every embedder.

all-MiniLM-L6-v2 gives two texts that have nothing in common a cosine of about 0, multilingual-e5-small one of 0.75. A
calibration holds an embedder's typical cosines, and turns a cosine into a *closeness*: 0 for what has nothing in
common, 1 for what is typically closest. Those of the built-in models were measured on public sets (docs/quality.md);
for any other embedder `manage.py fit_thresholds` measures them on the site's own documents.

Without a calibration, what is judged by closeness is judged by words, or not at all; `manage.py check`, the log,
`/readyz`, the dashboard and the debug panel say so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import DatabaseError

from retrieval.exceptions import NotFitted
from retrieval.index import embedder_choice
from retrieval.models import Chunk, EmbedderCalibration
from retrieval.text.chunking import embedding_text

if TYPE_CHECKING:
    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

CALIBRATION_VERSION = 2
"""Raise it when a calibration holds other figures; what was stored before is then to be fitted again."""
# A running process reads a new calibration after this time.
KEPT_SECONDS = 30.0

MOST_PASSAGES, FEWEST_PASSAGES = 240, 40
BATCH = 16
LEAST_SEPARATION = 0.7
"""Below it the vectors do not tell what a question is about, whatever scale they are on."""

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Typical cosines of one embedder, the scale of its closeness.

    ``unrelated`` is the cosine of a question and a passage about something else, ``answering`` of a question and a
    passage that answers it, and ``unrelated_texts`` of two texts about different things. ``across_languages`` is true
    if the first two also apply when question and passage are in different languages. ``vector_weight`` is the share of
    the embedder's scores in the sum of z-scores; None uses the share that the search method sets.
    """

    unrelated: float
    answering: float
    unrelated_texts: float
    across_languages: bool = False
    vector_weight: float | None = None

    def closeness(self, cosine: float) -> float:
        """How close a passage is to a question: 0 like any passage, 1 like one that answers; not bounded."""
        return (cosine - self.unrelated) / (self.answering - self.unrelated)

    def likeness(self, cosine: float) -> float:
        """How similar two texts are: 0 like any two, 1 for the same text; may be below 0."""
        return (cosine - self.unrelated_texts) / (1.0 - self.unrelated_texts)

    def cosine_of_likeness(self, likeness: float) -> float:
        return self.unrelated_texts + likeness * (1.0 - self.unrelated_texts)


E5 = Calibration(unrelated=0.796, answering=0.874, unrelated_texts=0.813, across_languages=True)
# Above the median of .46, so that as many answerable questions are refused as with multilingual-e5-small.
MINILM = Calibration(unrelated=0.05, answering=0.60, unrelated_texts=0.08)
BUILT_IN = {"multilingual-e5-small/int8": E5, "all-MiniLM-L6-v2/int8": MINILM}


_kept: dict[str, tuple[float, Calibration | None]] = {}
forget_calibrations = _kept.clear


def current_calibration() -> Calibration | None:
    """The calibration of the configured embedder; None, with a warning in the log, when nothing was fitted for it."""
    return calibration_of(embedder_choice.embedder().name)


def calibration_of(embedder: str) -> Calibration | None:
    """As :func:`current_calibration`, of the embedder with this name."""
    if embedder in BUILT_IN:
        return BUILT_IN[embedder]
    until, found = _kept.get(embedder, (0.0, None))
    if time.monotonic() >= until:
        found = stored_calibration(embedder)
        if found is None:
            logger.warning("%s", missing_calibration(embedder))
        _kept[embedder] = time.monotonic() + KEPT_SECONDS, found
    return found


def uncalibrated_embedder() -> str:
    """The name of the configured embedder when nothing was fitted for it; empty otherwise."""
    return "" if current_calibration() is not None else embedder_choice.embedder().name


def missing_calibration(embedder: str) -> str:
    """The sentence that tells an administrator that the embedder has no calibration."""
    return (
        f"No thresholds were fitted for the embedder {embedder}: whether documents answer a question and support a "
        "sentence is judged by words alone, and relevancy is not judged. Run `manage.py fit_thresholds`."
    )


def stored_calibration(embedder: str) -> Calibration | None:
    """Return the calibration stored for the embedder with this name; None if there is none or it cannot be read."""
    try:
        row = EmbedderCalibration.objects.filter(name=embedder, scale_version=CALIBRATION_VERSION).first()
        return Calibration(**row.scales) if row is not None else None
    except (DatabaseError, TypeError) as error:
        logger.warning("The calibration of %s could not be read: %s", embedder, error)
        return None


# Fitting -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted for the embedder ``name``, on how many ``passages`` of the site. ``separation`` is the share of
    questions to which their own passage is nearer than another one."""

    name: str
    passages: int
    calibration: Calibration
    separation: float


def fit_thresholds(report: Report, *, across_languages: bool = False) -> Fit:
    """Fit and store the calibration of the configured embedder, which applies from then on.

    ``across_languages`` is a property of the embedder: it is stored as given, not fitted. The question of a passage is
    its first canonical question, or the innermost heading above it. Raises: NotFitted if the embedder is built in, if
    there are too few passages, or if the vectors do not separate them; EmbeddingFailed.
    """
    embedder = embedder_choice.embedder()
    if embedder.name in BUILT_IN:
        raise NotFitted("The thresholds of a built-in model are shipped: there is nothing to fit.")
    material = _load_material()
    if len(material) < FEWEST_PASSAGES:
        raise NotFitted(
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
    # A few places further in the list stands a passage about something else: the list is in the order of hashes.
    own = np.einsum("ij,ij->i", asked, passages)
    other = np.einsum("ij,ij->i", asked, np.roll(passages, 1, axis=0))
    texts = np.einsum("ij,ij->i", passages, np.roll(passages, 1, axis=0))
    separation = float((own > other).mean())
    if separation < LEAST_SEPARATION:
        raise NotFitted(
            f"The vectors of {embedder.name} do not tell the passage that answers a question from another one: the "
            f"right one is nearer for {separation:.0%} of the questions."
        )
    unrelated, answering, unrelated_texts = (float(np.median(cosines)) for cosines in (other, own, texts))
    fitted = Calibration(unrelated, answering, unrelated_texts, across_languages)
    store_calibration(embedder.name, fitted, len(material))
    return Fit(embedder.name, len(material), fitted, separation)


def store_calibration(name: str, fitted: Calibration, passages: int | None = None) -> None:
    """Store the calibration of the embedder with this name.

    ``passages`` is the number of passages that it was fitted on; None keeps the stored number.
    """
    how: dict[str, Any] = {"scale_version": CALIBRATION_VERSION, "scales": asdict(fitted)}
    if passages is not None:
        how["passages"] = passages
    EmbedderCalibration.objects.update_or_create(name=name, defaults=how)
    forget_calibrations()


def _load_material() -> list[tuple[str, str]]:
    """Passages of the site as they are embedded, each with a question; at most MOST_PASSAGES, in the order of the
    hashes of their texts."""
    found: dict[str, tuple[str, str]] = {}
    chunks = Chunk.objects.select_related("document").order_by("content_hash", "pk")
    wanted = chunks.only("content", "content_hash", "heading_path", "canonical_questions", "document__title")
    for chunk in wanted.iterator(chunk_size=200):
        if len(found) == MOST_PASSAGES:
            break
        question = next(iter(chunk.canonical_questions), "") or next(iter(reversed(chunk.heading_path)), "")
        if question and chunk.content_hash not in found:
            text = embedding_text(chunk.document.title, chunk.heading_path, chunk.content)
            found[chunk.content_hash] = text, question
    return list(found.values())
