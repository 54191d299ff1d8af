from __future__ import annotations

from django.db import models


class RequestCount(models.Model):
    """How many requests one caller has sent in the current window of a limit.

    A crash of the database may lose the counts, because the table is unlogged.
    """

    key = models.CharField(max_length=200, primary_key=True)
    calls = models.PositiveIntegerField()
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.key}: {self.calls}"
