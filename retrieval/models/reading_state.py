from __future__ import annotations

from django.db import models

from retrieval.models.source import Source


class ReadingState(models.Model):
    """How far a source that is read incrementally was read, and is saved.

    ``messages`` are the connector's STATE messages as its next reading gets them. ``setup`` is a hash of the settings
    that they belong to. ``began_run`` is the run in which a reading of everything began that is not complete.
    """

    source = models.OneToOneField(Source, models.CASCADE, related_name="reading_state")
    setup = models.CharField(max_length=64)
    # JSON as text: a column of JSON takes no zero bytes.
    messages = models.TextField(blank=True)
    began_run = models.BigIntegerField(null=True)
    read_all_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return str(self.source_id)
