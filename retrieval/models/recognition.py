from __future__ import annotations

from django.db import models


class RecognisedPage(models.Model):
    """What was recognised on one page of a file: kept as soon as it is known, so that no page is recognised twice.

    ``words`` holds [text, left, top, right, bottom, line, confidence] of each, in ten thousandths of the upright page.
    ``failure`` says why nothing could be recognised; the page is not tried again with the same ``recipe``.
    """

    content_hash = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    # The engine, its version and its languages.
    recipe = models.CharField(max_length=200)
    width = models.FloatField(default=0)
    height = models.FloatField(default=0)
    turned = models.PositiveSmallIntegerField(default=0)
    words = models.JSONField(default=list)
    confidence = models.FloatField(null=True)
    failure = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["content_hash", "number", "recipe"], name="page_recognised_once")
        ]

    def __str__(self) -> str:
        return f"page {self.number} of {self.content_hash[:12]}"
