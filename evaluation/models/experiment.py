from __future__ import annotations

import uuid
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from evaluation.experiments.assignment import Arm as AssignedArm
from evaluation.models.people import user_key
from retrieval.models import SearchProfileVersion


class ExperimentIsFixed(TypeError):
    """A field that is fixed at the start was changed afterwards. For the programmer."""


def new_salt() -> str:
    return uuid.uuid4().hex


class Experiment(models.Model):
    """Two search profiles, each for a share of the visitors, and the rule by which they are told apart.

    All that matters is written down before the start and cannot be changed after it; at most one experiment runs.
    ``control`` is empty for the settings of the site, which are kept as they were at the start in ``control_settings``.
    ``planned_control`` and ``planned_treatment`` are the visitors after whom there is the one look of a fixed horizon,
    or the last one of a sequential test.
    """

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        RUNNING = "running", _("running")
        ENDED = "ended", _("ended")

    class Design(models.TextChoices):
        SEQUENTIAL = "sequential", _("sequential: may be looked at after every visitor")
        FIXED = "fixed", _("fixed horizon: one look, at the planned number of visitors")

    class Metric(models.TextChoices):
        HELPFUL = "helpful", _("helpful rate, of the answers that were rated")
        GROUNDEDNESS = "groundedness", _("groundedness of the answers")
        REFUSAL = "refusal", _("refusal rate")
        LATENCY = "latency", _("typical latency (geometric mean, near the median)")
        LATENCY_MEAN = "latency_mean", _("mean latency in milliseconds")

    class Better(models.TextChoices):
        HIGHER = "higher", _("higher")
        LOWER = "lower", _("lower")

    # What the visitors' arms and the conclusions follow from.
    FIXED_FIELDS = (
        "control_id", "treatment_id", "control_settings", "traffic_share", "treatment_share", "metric", "better",
        "design", "alpha", "power", "baseline", "standard_deviation", "smallest_effect", "observation_hours", "salt",
        "planned_control", "planned_treatment", "started_at",
    )  # fmt: skip

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
        help_text=_("That takes part, between 0.01 and 1. All others get the profile in force."),
    )
    treatment_share = models.FloatField(
        _("share of the treatment"),
        default=0.5,
        validators=[MinValueValidator(0.05), MaxValueValidator(0.95)],
        help_text=_("Of those that take part, between 0.05 and 0.95."),
    )
    metric = models.CharField(_("primary metric"), max_length=16, choices=Metric, default=Metric.HELPFUL)
    better = models.CharField(_("better when"), max_length=8, choices=Better, default=Better.HIGHER)
    design = models.CharField(_("stopping rule"), max_length=12, choices=Design, default=Design.SEQUENTIAL)
    alpha = models.FloatField(
        _("alpha"),
        default=0.05,
        validators=[MinValueValidator(0.001), MaxValueValidator(0.2)],
        help_text=_("The largest chance of finding a difference where there is none."),
    )
    power = models.FloatField(
        _("power"),
        default=0.8,
        validators=[MinValueValidator(0.5), MaxValueValidator(0.99)],
        help_text=_("The chance of finding the smallest effect that matters, where there is one."),
    )
    baseline = models.FloatField(
        _("metric today"), help_text=_("Rates and scores between 0 and 1, latencies in milliseconds.")
    )
    standard_deviation = models.FloatField(
        _("standard deviation"),
        null=True,
        blank=True,
        help_text=_("Between visitors. For a rate it may be left empty; for typical latency it is that of logarithms."),
    )
    smallest_effect = models.FloatField(
        _("smallest effect that matters"),
        help_text=_("A difference, such as 0.05; for typical latency a share, such as 0.1 for ten per cent."),
    )
    observation_hours = models.PositiveSmallIntegerField(
        _("hours of observation"),
        default=24,
        validators=[MinValueValidator(1), MaxValueValidator(24 * 28)],
        help_text=_("A visitor's answers count for so long after the first, and are counted when that time is over."),
    )
    salt = models.CharField(max_length=32, default=new_salt, editable=False)
    planned_control = models.PositiveIntegerField(_("planned visitors, control"), default=0, editable=False)
    planned_treatment = models.PositiveIntegerField(_("planned visitors, treatment"), default=0, editable=False)

    state = models.CharField(_("state"), max_length=8, choices=State, default=State.DRAFT, editable=False)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    created_by = user_key(_("made by"), editable=False)
    started_at = models.DateTimeField(_("started"), null=True, editable=False)
    started_by = user_key(_("started by"), editable=False)
    ended_at = models.DateTimeField(_("ended"), null=True, editable=False)
    ended_by = user_key(_("ended by"), editable=False)
    conclusion = models.TextField(_("conclusion"), blank=True, editable=False)
    published_at = models.DateTimeField(_("winner published"), null=True, editable=False)
    published_by = user_key(_("winner published by"), editable=False)

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

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Raises: ExperimentIsFixed when something that matters differs from what a started experiment was."""
        if not self._state.adding:
            stored = Experiment.objects.filter(pk=self.pk).exclude(state=self.State.DRAFT).first()
            if stored and any(getattr(stored, field) != getattr(self, field) for field in self.FIXED_FIELDS):
                raise ExperimentIsFixed(f"Experiment {self.pk} has started: what was written down stays as it is.")
        super().save(*args, **kwargs)

    @property
    def is_fixed_horizon(self) -> bool:
        return self.design == self.Design.FIXED


class Exposure(models.Model):
    """An answer that a visitor got within an experiment. Its outcomes are what is known of the answer.

    ``subject`` is the visitor's pseudonym, which holds for this experiment only.
    """

    class Arm(models.TextChoices):
        CONTROL = AssignedArm.CONTROL.value, _("control")
        TREATMENT = AssignedArm.TREATMENT.value, _("treatment")

    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="exposures", verbose_name=_("experiment"))
    answer = models.OneToOneField(Answer, models.CASCADE, related_name="exposure", verbose_name=_("answer"))
    subject = models.CharField(max_length=32)
    arm = models.CharField(_("arm"), max_length=9, choices=Arm)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("exposure")
        verbose_name_plural = _("exposures")
        indexes = [models.Index(fields=["experiment", "subject"], name="exposure_by_subject")]

    def __str__(self) -> str:
        return f"{self.experiment_id}: {self.arm}"
