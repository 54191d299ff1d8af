from __future__ import annotations

from django.db import models


class RequestCount(models.Model):
    """One caller's requests against one limit within the present window.

    The table is unlogged: a crash of the server loses only a minute's count.
    """

    key = models.CharField(max_length=200, primary_key=True)
    calls = models.PositiveIntegerField()
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.key}: {self.calls}"
