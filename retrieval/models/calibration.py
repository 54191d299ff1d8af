from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class EmbedderCalibration(models.Model):
    """The scale on which an embedder's cosines lie, as fitted on this site's documents (`retrieval.dense.calibration`).

    ``name`` is the embedder's. That of a model in this process holds a hash of its files: another file is another
    embedder; that of an embedding server does not change with its model. The row is kept when the site moves to another
    embedder, and serves again when it comes back.
    """

    name = models.CharField(_("embedder"), max_length=200, unique=True)
    scale_version = models.PositiveIntegerField()
    scales = models.JSONField()
    passages = models.PositiveIntegerField(_("passages"))
    fitted_at = models.DateTimeField(_("fitted"), auto_now=True)

    class Meta:
        verbose_name = _("calibration of an embedder")
        verbose_name_plural = _("calibrations of embedders")

    def __str__(self) -> str:
        return self.name
