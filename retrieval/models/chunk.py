from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.utils.translation import gettext_lazy as _
from pgvector.django import SparseVectorField

from retrieval.models.collection import Collection
from retrieval.models.document import Document
from retrieval.text.terms import DIMENSIONS


class Chunk(models.Model):
    """A passage: the unit that is ranked, quoted and cited.

    ``content`` is ``text[start:end]`` of its document, to the character. ``search_vector`` says which lexemes it holds,
    ``bm25`` what each is worth: the saturated, length-normalised term weight of BM25, at the lexeme's hashed dimension.
    Only ``retrieval.documents`` writes chunks.
    """

    document = models.ForeignKey(Document, models.CASCADE, related_name="chunks", verbose_name=_("document"))
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="chunks", verbose_name=_("collection"))
    ordinal = models.PositiveIntegerField(_("number"), help_text=_("Place in the document, from 0."))
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    page = models.PositiveIntegerField(_("page"), null=True, blank=True)
    heading_path = ArrayField(models.TextField(), verbose_name=_("headings"), default=list, blank=True)
    content = models.TextField(_("text"))
    content_hash = models.CharField(max_length=64)
    token_count = models.PositiveIntegerField(_("tokens"))
    canonical_questions = ArrayField(
        models.TextField(), verbose_name=_("questions it answers"), default=list, blank=True
    )
    questions_edited = models.BooleanField(
        _("questions written by hand"),
        default=False,
        db_default=False,
        help_text=_("Kept when the document is read again, as long as the passage is the same."),
    )
    # The blocks that hold some of it, as `retrieval.text.block` writes them.
    blocks = models.JSONField(default=list, db_default=[])
    search_vector = SearchVectorField()
    bm25 = SparseVectorField(dimensions=DIMENSIONS)
    length = models.FloatField(help_text=_("Length in lexemes, fields weighted by their boosts."))

    class Meta:
        ordering = ["document_id", "ordinal"]
        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        constraints = [
            # Deferred: a new version of a document moves passages past each other within one transaction.
            models.UniqueConstraint(
                fields=["document", "ordinal"], name="one_chunk_per_place", deferrable=models.Deferrable.DEFERRED
            )
        ]
        indexes = [
            GinIndex(fields=["search_vector"], name="chunk_search_vector"),
            # Few are, and they are asked for by themselves.
            models.Index(
                fields=["collection"], condition=models.Q(questions_edited=True), name="chunk_questions_edited"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.document_id}#{self.ordinal}"

    @property
    def section(self) -> str:
        """Headings above the passage, outermost first; empty when there are none."""
        return " › ".join(self.heading_path)
