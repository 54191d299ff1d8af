from __future__ import annotations

import uuid

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.users import build_user_key
from retrieval.models import SearchProfileVersion


def new_salt() -> str:
    return uuid.uuid4().hex


class Experiment(models.Model):
    """An experiment in which half of the participating visitors get one search profile, and half another.

    ``metric`` decides which is better. ``control`` is None for the built-in profile, whose settings at the start are in
    ``control_settings``.
    """

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        RUNNING = "running", _("running")
        ENDED = "ended", _("ended")

    class Metric(models.TextChoices):
        HELPFUL = "helpful", _("helpful rate, of the answers that were rated")
        REFUSAL = "refusal", _("refusal rate")

    name = models.CharField(_("name"), max_length=200, unique=True)
    hypothesis = models.TextField(_("hypothesis"), blank=True, help_text=_("What should get better, and why."))
    control = models.ForeignKey(
        SearchProfileVersion,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("control"),
        help_text=_("Empty: the built-in profile, which is the site's settings."),
    )
    treatment = models.ForeignKey(SearchProfileVersion, models.PROTECT, related_name="+", verbose_name=_("treatment"))
    control_settings = models.JSONField(null=True, blank=True, editable=False)
    traffic_share = models.FloatField(
        _("share of the visitors"),
        default=1.0,
        validators=[MinValueValidator(0.01), MaxValueValidator(1.0)],
        help_text=_("The share of visitors in the experiment, 0.01 to 1. The others get the published profile."),
    )
    metric = models.CharField(
        _("primary metric"),
        max_length=16,
        choices=Metric,
        default=Metric.HELPFUL,
        help_text=_("A higher helpful rate is better; a lower refusal rate is better."),
    )
    salt = models.CharField(max_length=32, default=new_salt, editable=False)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.DRAFT, editable=False)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    started_at = models.DateTimeField(_("started"), null=True, editable=False)
    started_by = build_user_key(_("started by"), editable=False)
    ended_at = models.DateTimeField(_("ended"), null=True, editable=False)
    ended_by = build_user_key(_("ended by"), editable=False)
    conclusion = models.TextField(_("conclusion"), blank=True, editable=False)

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("experiment")
        verbose_name_plural = _("experiments")
        constraints = [
            models.UniqueConstraint(fields=["state"], condition=Q(state="running"), name="one_running_experiment"),
            models.CheckConstraint(
                condition=(
                    Q(state="draft", started_at=None, ended_at=None)
                    | Q(state="running", started_at__isnull=False, ended_at=None)
                    | Q(state="ended", started_at__isnull=False, ended_at__isnull=False)
                ),
                name="experiment_state_has_its_times",
            ),
        ]

    def __str__(self) -> str:
        return self.name
