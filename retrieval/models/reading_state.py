from __future__ import annotations

from django.db import models

from retrieval.models.source import Source


class ReadingState(models.Model):
    """How far an incremental source was read and saved.

    ``messages`` are the connector's STATE messages, with which its next call begins. ``setup`` is a hash of the
    settings to which they belong. ``began_run`` is the run that began to read everything, if this is not complete yet.
    """

    source = models.OneToOneField(Source, models.CASCADE, related_name="reading_state")
    setup = models.CharField(max_length=64)
    # JSON as text, because a JSON column cannot store NUL characters.
    messages = models.TextField(blank=True)
    began_run = models.BigIntegerField(null=True)
    read_all_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return str(self.source_id)
