from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class IndexCheck(models.Model):
    """What one reconciliation found; see ``retrieval.documents.reconciliation``.

    A row and not a counter in memory, because a worker checks and web processes show it. ``inconsistencies`` holds one
    object for each kind and collection: kind, collection, count, examples, repaired.
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
