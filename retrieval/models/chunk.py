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
    """A passage: a part of a document, which is ranked, quoted and cited as a whole.

    ``content`` is the document's ``text[start:end]``. ``bm25`` are the BM25 weights of its lexemes, indexed by a hash
    of the lexeme.
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
    # The blocks (such as lists and tables) that overlap with the passage.
    blocks = models.JSONField(default=list, db_default=[])
    # PostgreSQL's text-search configuration; empty in rows of older versions.
    configuration = models.CharField(max_length=20, default="", db_default="")
    search_vector = SearchVectorField()
    bm25 = SparseVectorField(dimensions=DIMENSIONS)
    length = models.FloatField(help_text=_("Length in lexemes, fields weighted by their boosts."))

    class Meta:
        ordering = ["document_id", "ordinal"]
        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        constraints = [
            # Deferred, because a new version of a document renumbers its passages one by one.
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
    """An embedding model with a precision and a number of dimensions. Only the vectors of one embedder are searched.

    ``options`` are the choices in the admin (``embedder_choice.build_chosen_embedder``).
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
    """How well an embedder's cosines show relevance, fitted to this site's documents (`retrieval.index.closeness`).

    Rows of earlier embedders are kept, because the site may return to them.
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
    """The unit vector of a passage by one embedder.

    The column has no fixed width, so that the vectors of two embedders can be stored during a switch.
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
    """The result of one comparison of the index with documents and files.

    Each of ``inconsistencies`` has kind, collection, count, examples and repaired.
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
    """How many of a collection's passages contain a lexeme (indexed word), for BM25."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    lexeme = models.TextField()
    document_frequency = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "lexeme"], name="one_row_per_lexeme")]
        # Spelling correction looks up lexemes by first letter and length.
        indexes = [
            models.Index(F("collection"), Left("lexeme", 1), Length("lexeme"), name="lexeme_beginning_and_length"),
            # Searches complete a part number from its first characters.
            models.Index(F("collection"), OpClass("lexeme", "text_pattern_ops"), name="lexeme_beginning"),
        ]

    def __str__(self) -> str:
        return f"{self.lexeme}: {self.document_frequency}"


class Table(models.Model):
    """A table in a document's text, from which answers are computed. ``columns`` are lists of name, kind and unit."""

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
    """A row of a table.

    ``values`` are the cells' values with types. ``cells`` has [start, end] of each cell in the document's text.
    ``labels`` are the row's text cells, reduced to letters and digits.
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
