from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from pgvector.django import HalfVectorField

from retrieval.models.chunk import Chunk
from retrieval.models.collection import Collection
from retrieval.models.document import Document


class Embedder(models.Model):
    """A vector space: a model, at a precision, with a width. Exactly one is searched at a time."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    dimension = models.PositiveIntegerField(_("width"))
    is_active = models.BooleanField(_("searched"), default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("embedder")
        verbose_name_plural = _("embedders")
        constraints = [
            models.UniqueConstraint(fields=["is_active"], condition=Q(is_active=True), name="one_active_embedder")
        ]

    def __str__(self) -> str:
        return self.name


class EmbedderCalibration(models.Model):
    """The scale on which an embedder's cosines lie, as fitted on this site's documents (`retrieval.index.closeness`).

    ``name`` is the embedder's. That of a model in this process holds a hash of its files: another file is another
    embedder; that of an embedding server does not change with its model. The row is kept when the site moves to another
    embedder, and serves again when it comes back.
    """

    name = models.CharField(_("embedder"), max_length=200, unique=True)
    scale_version = models.PositiveIntegerField()
    scales = models.JSONField()
    passages = models.PositiveIntegerField(_("passages"))
    fitted_at = models.DateTimeField(_("fitted"), auto_now=True)

    class Meta:
        verbose_name = _("calibration of an embedder")
        verbose_name_plural = _("calibrations of embedders")

    def __str__(self) -> str:
        return self.name


class ChunkEmbedding(models.Model):
    """The unit vector of a passage in one embedder's space.

    The column has no fixed width, so that two embedders can live side by side while the site moves from one to the
    other; each has an HNSW index of its own (see ``retrieval.index.vector_index``). Half precision changed no ranking
    figure on any of the public test sets, and halves the index.
    """

    chunk = models.ForeignKey(Chunk, models.CASCADE, related_name="embeddings")
    document = models.ForeignKey(Document, models.CASCADE, related_name="+")
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    embedder = models.ForeignKey(Embedder, models.CASCADE, related_name="embeddings")
    vector = HalfVectorField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chunk", "embedder"], name="one_vector_per_chunk_and_embedder")]

    def __str__(self) -> str:
        return f"{self.chunk_id} in {self.embedder_id}"
