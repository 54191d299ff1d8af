from __future__ import annotations

from django.db import models


class ModelTrial(models.Model):
    """Whether a language model, by its name and server, was seen to call functions rightly; None until it was tried.

    ``tried_at`` is
    when the last trial began, or ended.
    """

    model = models.CharField(max_length=500, unique=True)
    uses_functions = models.BooleanField(null=True)
    tried_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.model
