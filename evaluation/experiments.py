"""Run experiments, in which a visitor gets one of two search profiles, and compare the profiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import connection, models, transaction
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.answering.approved_answers import NAME as APPROVED
from core.dataclass_json import to_json
from evaluation.arms import ExperimentArm, ExperimentEffect, assign_arm, estimate_effect
from evaluation.figures import format_fixed
from evaluation.models import Experiment
from retrieval.profile_settings import ImproperProfile, from_json
from retrieval.search.profiles.profiles import (
    BUILT_IN,
    NamedProfile,
    build_named_profile,
    get_built_in_profile,
    register_profile_chooser,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    User = AbstractBaseUser | AnonymousUser

# An answer counts if the visitor asked within this time after the first question.
OBSERVATION = "24 hours"


class ExperimentRefused(Exception):
    """An error: the experiment cannot be started or ended now. The admin reads the message."""


def choose_profile(subject: str) -> NamedProfile | None:
    """Return the search profile that the running experiment gives the visitor.

    The result is None if no experiment is running, or if the visitor takes no part in it. Raises: ImproperProfile.
    """
    running = (
        Experiment.objects.select_related("control__profile", "treatment__profile")
        .filter(state=Experiment.State.RUNNING)
        .first()
    )
    arm = find_arm(running, subject) if running is not None else None
    if running is None or arm is None:
        return None
    version = running.treatment if arm is ExperimentArm.TREATMENT else running.control
    if version is not None:
        return build_named_profile(version)
    # A new release may change the built-in profile, so the settings saved at the experiment's start are used.
    return NamedProfile(BUILT_IN, from_json(running.control_settings or {}))


def find_arm(experiment: Experiment, subject: str) -> ExperimentArm | None:
    return assign_arm(experiment.salt, subject, experiment.traffic_share)


register_profile_chooser(choose_profile)


# The query returns one row for each visitor, because the answers of one visitor are not independent.
_VISITORS = """
    WITH answers AS (
        SELECT
            conversation.owner_id,
            conversation.visitor,
            answer.created_at AS asked_at,
            MIN(answer.created_at) OVER (PARTITION BY conversation.owner_id, conversation.visitor) AS began,
            feedback.helpful::int AS helpful,
            feedback.created_at AS rated_at,
            CASE WHEN answer.status = 'completed' THEN answer.refused::int END AS refusal
        FROM chat_answer AS answer
        JOIN chat_conversation AS conversation ON conversation.id = answer.conversation_id
        LEFT JOIN chat_feedback AS feedback ON feedback.answer_id = answer.id
        WHERE answer.created_at >= %(since)s AND answer.created_at < %(until)s AND answer.method = ''
            AND (answer.status IN ('failed', 'stopped')
                OR answer.status = 'completed' AND answer.search_method NOT IN ('', %(approved)s))
    )
    SELECT
        owner_id,
        visitor,
        began + %(observation)s::interval <= %(until)s,
        COUNT(*),
        AVG(helpful) FILTER (WHERE rated_at < began + %(observation)s::interval)::float,
        AVG(refusal)::float
    FROM answers
    WHERE asked_at < began + %(observation)s::interval
    GROUP BY owner_id, visitor, began
"""


class ExperimentVerdict(models.TextChoices):
    WAITING = "waiting", _("No decision yet")
    TREATMENT = "treatment", _("The treatment is better")
    CONTROL = "control", _("The control is better")
    NO_DIFFERENCE = "no difference", _("No difference was found")


@dataclass(slots=True)
class ArmOutcome:
    """The outcome of one arm (half) of an experiment. ``values`` has a number for each visitor by metric.

    ``observed`` is the number of visitors who are still observed (for OBSERVATION). The other fields do not include
    these visitors.
    """

    arm: ExperimentArm
    profile: str
    visitors: int = 0
    observed: int = 0
    answers: int = 0
    values: dict[str, list[float]] = field(default_factory=lambda: {metric: [] for metric in Experiment.Metric.values})


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """The outcomes of both arms of an experiment.

    ``effects`` maps each metric, the deciding one first, to the difference, or to None if there are too few visitors.
    """

    experiment: Experiment
    control: ArmOutcome
    treatment: ArmOutcome
    effects: dict[str, ExperimentEffect | None]

    @property
    def verdict(self) -> ExperimentVerdict:
        found = self.effects[self.experiment.metric]
        if found is None or not found.excludes_zero:
            is_over = self.experiment.state == Experiment.State.ENDED
            return ExperimentVerdict.NO_DIFFERENCE if is_over else ExperimentVerdict.WAITING
        is_better_when_higher = self.experiment.metric == Experiment.Metric.HELPFUL
        is_treatment = (found.difference > 0) == is_better_when_higher
        return ExperimentVerdict.TREATMENT if is_treatment else ExperimentVerdict.CONTROL


def build_report(experiment: Experiment) -> ExperimentReport:
    control, treatment = (
        ArmOutcome(arm, str(version or _t("the built-in profile")))
        for arm, version in (
            (ExperimentArm.CONTROL, experiment.control),
            (ExperimentArm.TREATMENT, experiment.treatment),
        )
    )
    parameters = {
        "since": experiment.started_at,
        "until": experiment.ended_at or timezone.now(),
        "observation": OBSERVATION,
        "approved": APPROVED,
    }
    with connection.cursor() as cursor:
        cursor.execute(_VISITORS, parameters)
        for owner, visitor, is_over, answers, *values in cursor.fetchall():
            # This text must be equal to `Conversation.experiment_subject`.
            subject = f"user:{owner}" if owner is not None else f"visitor:{visitor}" if visitor else ""
            arm = find_arm(experiment, subject)
            if arm is None:
                continue
            outcome = treatment if arm is ExperimentArm.TREATMENT else control
            if not is_over:
                outcome.observed += 1
                continue
            outcome.visitors += 1
            outcome.answers += answers
            for metric, value in zip((Experiment.Metric.HELPFUL, Experiment.Metric.REFUSAL), values, strict=True):
                if value is not None:
                    outcome.values[metric].append(value)
    metrics = sorted(Experiment.Metric.values, key=lambda metric: metric != experiment.metric)
    effects = {metric: estimate_effect(control.values[metric], treatment.values[metric]) for metric in metrics}
    return ExperimentReport(experiment, control, treatment, effects)


def describe_verdict(summary: ExperimentReport) -> str:
    found = summary.effects[summary.experiment.metric]
    if found is None or not found.is_known:
        if summary.verdict is ExperimentVerdict.WAITING:
            return _t("No decision yet: there are too few visitors.")
        return _t("Ended with too few visitors: nothing can be said about the difference.")
    return _t("%(verdict)s: %(metric)s %(difference)s (%(low)s to %(high)s).") % {
        "verdict": summary.verdict.label,
        "metric": summary.experiment.get_metric_display(),
        "difference": format_percentage_points(found.difference),
        "low": format_percentage_points(found.low),
        "high": format_percentage_points(found.high),
    }


def format_percentage_points(difference: float) -> str:
    return f"{format_fixed(100 * difference, 1, signed=True)} pp"


def start_experiment(experiment: Experiment, started_by: User) -> Experiment:
    """Start the experiment.

    Raises: ExperimentRefused if it was started before, if another one runs, or if its profiles are equal or unreadable.
    """
    with transaction.atomic():
        states = {one.pk: one for one in Experiment.objects.select_for_update().order_by("pk")}
        experiment = states[experiment.pk]
        if experiment.state != Experiment.State.DRAFT:
            raise ExperimentRefused(_t("This experiment has been started before."))
        running = next((one for one in states.values() if one.state == Experiment.State.RUNNING), None)
        if running is not None:
            raise ExperimentRefused(_t("“%s” is running: end it first.") % running)
        try:
            control = experiment.control.read_settings() if experiment.control else get_built_in_profile()
            treatment = experiment.treatment.read_settings()
        except ImproperProfile as error:
            raise ExperimentRefused(_t("One of the profiles cannot be read: %s") % error) from error
        if control == treatment:
            raise ExperimentRefused(_t("Control and treatment have the same settings, so there is nothing to find."))
        experiment.control_settings = to_json(control) if experiment.control is None else None
        experiment.state = Experiment.State.RUNNING
        experiment.started_at, experiment.started_by_id = timezone.now(), started_by.pk
        experiment.save()
    return experiment


def end_experiment(experiment: Experiment, ended_by: User) -> Experiment:
    """End a running experiment, and store its conclusion. Raises: ExperimentRefused if it does not run."""
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if experiment.state != Experiment.State.RUNNING:
            raise ExperimentRefused(_t("This experiment does not run."))
        experiment.state = Experiment.State.ENDED
        experiment.ended_at, experiment.ended_by_id = timezone.now(), ended_by.pk
        experiment.conclusion = describe_verdict(build_report(experiment))
        experiment.save()
    return experiment
