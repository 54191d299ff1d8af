from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Left, Length
from django.utils.translation import gettext_lazy as _
from pgvector.django import HalfVectorField, SparseVectorField

from retrieval.models.collection import Collection
from retrieval.models.document import Document
from retrieval.text.terms import DIMENSIONS


class Chunk(models.Model):
    """A passage: the unit that is ranked, quoted and cited.

    ``content`` is exactly the document's ``text[start:end]``. ``bm25`` contains the lexemes' saturated,
    length-normalised weights at hashed dimensions.
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
    # The blocks that the passage overlaps (`retrieval.text.block`).
    blocks = models.JSONField(default=list, db_default=[])
    # Empty in old rows.
    configuration = models.CharField(max_length=20, default="", db_default="")
    search_vector = SearchVectorField()
    bm25 = SparseVectorField(dimensions=DIMENSIONS)
    length = models.FloatField(help_text=_("Length in lexemes, fields weighted by their boosts."))

    class Meta:
        ordering = ["document_id", "ordinal"]
        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        constraints = [
            # A new version of a document reorders passages within one transaction.
            models.UniqueConstraint(
                fields=["document", "ordinal"], name="one_chunk_per_place", deferrable=models.Deferrable.DEFERRED
            )
        ]
        indexes = [
            GinIndex(fields=["search_vector"], name="chunk_search_vector"),
            models.Index(
                fields=["collection"], condition=models.Q(questions_edited=True), name="chunk_questions_edited"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.document_id}#{self.ordinal}"

    @property
    def section(self) -> str:
        return " › ".join(self.heading_path)


class Embedder(models.Model):
    """A vector space: a model, a precision and a width. Exactly one is searched at a time.

    ``options`` are for an embedder chosen in the admin (``embedder_choice.build_chosen``).
    """

    name = models.CharField(_("name"), max_length=200, unique=True)
    dimension = models.PositiveIntegerField(_("dimensions"))
    is_active = models.BooleanField(_("searched"), default=False)
    options = models.JSONField(default=dict, db_default={}, blank=True)
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
    """The scale of an embedder's cosines, fitted on this site's documents (`retrieval.index.closeness`).

    An embedding server's ``name`` does not change with its model. Rows are kept for a return to the embedder.
    """

    name = models.CharField(_("embedder"), max_length=200, unique=True)
    scale_version = models.PositiveIntegerField()
    scales = models.JSONField()
    passages = models.PositiveIntegerField(_("passages"))

    class Meta:
        verbose_name = _("calibration of an embedder")
        verbose_name_plural = _("calibrations of embedders")

    def __str__(self) -> str:
        return self.name


class ChunkEmbedding(models.Model):
    """The unit vector of a passage in one embedder's space.

    The column has no fixed width, because two embedders coexist during a switch. Half precision changed no ranking
    figure on the public test sets, and halves it.
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


class IndexCheck(models.Model):
    """The result of one reconciliation.

    ``inconsistencies`` has for each kind and collection: kind, collection, count, examples, repaired.
    """

    finished_at = models.DateTimeField(_("time"), auto_now_add=True)
    seconds = models.FloatField(_("seconds"))
    inconsistencies = models.JSONField(_("inconsistencies"), default=list)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("index check")
        verbose_name_plural = _("index checks")

    def __str__(self) -> str:
        return f"{self.finished_at:%Y-%m-%d %H:%M}"


class Lexeme(models.Model):
    """The number of chunks of a collection with a lexeme, for BM25's inverse document frequency."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    lexeme = models.TextField()
    document_frequency = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "lexeme"], name="one_row_per_lexeme")]
        # Spelling correction looks for lexemes that begin alike and are about as long.
        indexes = [
            models.Index(F("collection"), Left("lexeme", 1), Length("lexeme"), name="lexeme_beginning_and_length"),
            # Part numbers are completed by their beginning.
            models.Index(F("collection"), OpClass("lexeme", "text_pattern_ops"), name="lexeme_beginning"),
        ]

    def __str__(self) -> str:
        return f"{self.lexeme}: {self.document_frequency}"


class Table(models.Model):
    """A table in a document's text, for computed answers; written by ``retrieval.tables.stored_tables``.

    ``columns`` contains [name, kind, unit] of each column.
    """

    document = models.ForeignKey(Document, models.CASCADE, related_name="tables")
    ordinal = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    caption = models.TextField()
    columns = models.JSONField()
    row_count = models.PositiveIntegerField()

    class Meta:
        ordering = ["document_id", "ordinal"]
        constraints = [models.UniqueConstraint(fields=["document", "ordinal"], name="one_table_per_place")]

    def __str__(self) -> str:
        return f"table {self.ordinal} of document {self.document_id}"


class TableRow(models.Model):
    """A row: ``values`` are typed, ``cells`` are [start, end] in the document's text.

    ``labels`` are its text cells as letters and digits.
    """

    table = models.ForeignKey(Table, models.CASCADE, related_name="rows")
    ordinal = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    values = models.JSONField()
    cells = models.JSONField()
    labels = ArrayField(models.TextField())

    class Meta:
        ordering = ["table_id", "ordinal"]
        constraints = [models.UniqueConstraint(fields=["table", "ordinal"], name="one_table_row_per_place")]
        indexes = [GinIndex(fields=["labels"], name="table_row_labels")]

    def __str__(self) -> str:
        return f"row {self.ordinal} of table {self.table_id}"
