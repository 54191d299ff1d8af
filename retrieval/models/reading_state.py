from __future__ import annotations

from django.db import models

from retrieval.models.source import Source


class ReadingState(models.Model):
    """The progress in reading an incremental source, from which the next run continues.

    ``messages`` are the connector's STATE messages, valid for settings with the hash ``setup``. ``began_run`` is the
    run that began to read the whole source; None after the whole source was read.
    """

    source = models.OneToOneField(Source, models.CASCADE, related_name="reading_state")
    setup = models.CharField(max_length=64)
    # A JSON column cannot store NUL characters.
    messages = models.TextField(blank=True)
    began_run = models.BigIntegerField(null=True)
    read_all_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return str(self.source_id)
