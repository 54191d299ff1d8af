from __future__ import annotations

from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models import F
from django.db.models.functions import Left, Length

from retrieval.models.collection import Collection


class Lexeme(models.Model):
    """In how many chunks of a collection a lexeme occurs: the document frequency of BM25's inverse document
    frequency."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    lexeme = models.TextField()
    document_frequency = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "lexeme"], name="one_row_per_lexeme")]
        # What a misspelt word may have been: the lexemes that begin alike and are about as long.
        indexes = [
            models.Index(F("collection"), Left("lexeme", 1), Length("lexeme"), name="lexeme_beginning_and_length"),
            # The codes that begin with a part of one.
            models.Index(F("collection"), OpClass("lexeme", "text_pattern_ops"), name="lexeme_beginning"),
        ]

    def __str__(self) -> str:
        return f"{self.lexeme}: {self.document_frequency}"
