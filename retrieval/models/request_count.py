from __future__ import annotations

from django.db import models


class RequestCount(models.Model):
    """How many requests of one caller were counted against one limit since the moment that the window began.

    In the database, because every web process must know it; in a table that a crash of the server empties, because
    nothing is lost with it but a minute's count.
    """

    key = models.CharField(max_length=200, primary_key=True)
    calls = models.PositiveIntegerField()
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.key}: {self.calls}"
