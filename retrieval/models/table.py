from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from retrieval.models.document import Document


class Table(models.Model):
    """A table of a document's text, of which questions are computed. Only ``retrieval.tables.table_rows`` writes them.

    ``columns`` holds [name, kind, unit] of each column, ``terms`` the stems of its caption and of its columns' names.
    """

    document = models.ForeignKey(Document, models.CASCADE, related_name="tables")
    ordinal = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    caption = models.TextField()
    columns = models.JSONField()
    row_count = models.PositiveIntegerField()
    terms = ArrayField(models.TextField())

    class Meta:
        ordering = ["document_id", "ordinal"]
        constraints = [models.UniqueConstraint(fields=["document", "ordinal"], name="one_table_per_place")]
        indexes = [GinIndex(fields=["terms"], name="table_terms")]

    def __str__(self) -> str:
        return f"table {self.ordinal} of document {self.document_id}"


class TableRow(models.Model):
    """A row: ``values`` are typed, one a column, ``cells`` the [start, end] of each in the document's text.

    ``labels`` are its cells of text as letters and digits alone, by which a question that names one finds the row.
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
