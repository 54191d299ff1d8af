"""What an experiment's visitors did in both arms, which arm won, and the same in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext as _t

from evaluation.experiments.intervals import ArmRate, Effect, effect, is_imbalanced
from evaluation.figures import fixed
from evaluation.models import Experiment
from evaluation.models.arms import Arm

ALPHA = 0.05
# A visitor's answers count if they were asked within this time after the first, and only once the time is over: a
# visitor's number never changes after it was counted.
OBSERVATION = "24 hours"
FAILURE = "failure"
# The columns of the statement below, in their order. The unit is the visitor: answers of one visitor are alike.
_METRICS = (Experiment.Metric.HELPFUL, Experiment.Metric.REFUSAL, FAILURE)
_RATES = ", ".join(
    f"COUNT({metric}) FILTER (WHERE is_over), AVG({metric}) FILTER (WHERE is_over), "
    f"VAR_SAMP({metric}) FILTER (WHERE is_over)"
    for metric in _METRICS
)
_ARMS = f"""
    WITH answers AS (
        SELECT
            exposure.subject,
            exposure.arm,
            answer.created_at AS asked_at,
            MIN(answer.created_at) OVER (PARTITION BY exposure.subject) AS began,
            feedback.helpful::int AS helpful,
            feedback.created_at AS rated_at,
            CASE WHEN answer.status = 'completed' THEN answer.refused::int END AS refusal,
            (answer.status = 'failed')::int AS failure
        FROM evaluation_exposure AS exposure
        JOIN chat_answer AS answer ON answer.id = exposure.answer_id AND exposure.experiment_id = %(experiment)s
        LEFT JOIN chat_feedback AS feedback ON feedback.answer_id = answer.id
    ),
    visitors AS (
        SELECT
            arm,
            began + %(observation)s::interval <= %(until)s AS is_over,
            COUNT(*) AS answers,
            AVG(helpful) FILTER (WHERE rated_at < began + %(observation)s::interval)::float AS helpful,
            AVG(refusal)::float AS refusal,
            AVG(failure)::float AS failure
        FROM answers
        WHERE asked_at < began + %(observation)s::interval
        GROUP BY subject, arm, began
    )
    SELECT
        arm, COUNT(*) FILTER (WHERE is_over), COUNT(*) FILTER (WHERE NOT is_over),
        COALESCE(SUM(answers) FILTER (WHERE is_over), 0), {_RATES}
    FROM visitors GROUP BY arm
"""


class ExperimentVerdict(StrEnum):
    WAITING = "waiting"
    TREATMENT = "treatment"
    CONTROL = "control"
    NO_DIFFERENCE = "no difference"
    UNSOUND = "unsound"


@dataclass(frozen=True, slots=True)
class ArmSize:
    """An arm's visitors. Those still ``observed`` are not among ``visitors``, nor their answers among ``answers``."""

    arm: Arm
    profile: str
    visitors: int = 0
    observed: int = 0
    answers: int = 0


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """A metric in both arms. ``effect`` is None while there are too few visitors for an interval."""

    metric: str
    control: ArmRate
    treatment: ArmRate
    effect: Effect | None


@dataclass(frozen=True, slots=True)
class Report:
    """``watched`` are the metrics that do not decide; their intervals err together no more often than the primary's."""

    experiment: Experiment
    arms: tuple[ArmSize, ArmSize]
    primary: ArmComparison
    watched: tuple[ArmComparison, ...]
    verdict: ExperimentVerdict

    @property
    def winner(self) -> ArmSize | None:
        won = {ExperimentVerdict.CONTROL: self.arms[0], ExperimentVerdict.TREATMENT: self.arms[1]}
        return won.get(self.verdict)


def report(experiment: Experiment) -> Report:
    """The report of a started experiment, from its visitors until now or until it ended."""
    with connection.cursor() as cursor:
        until = experiment.ended_at or timezone.now()
        cursor.execute(_ARMS, {"experiment": experiment.pk, "observation": OBSERVATION, "until": until})
        rows = {row[0]: row[1:] for row in cursor.fetchall()}
    sizes, rates = [], []
    for arm, version in ((Arm.CONTROL, experiment.control), (Arm.TREATMENT, experiment.treatment)):
        visitors, observed, answers, *numbers = rows.get(arm.value, (0, 0, 0, *[0, None, None] * len(_METRICS)))
        sizes.append(ArmSize(arm, str(version or _t("the built-in profile")), visitors, observed, int(answers)))
        known: list[Any] = [float("nan") if number is None else number for number in numbers]
        rates.append({metric: ArmRate(*known[3 * at : 3 * at + 3]) for at, metric in enumerate(_METRICS)})
    compared = {
        metric: ArmComparison(
            metric,
            rates[0][metric],
            rates[1][metric],
            effect(
                rates[0][metric],
                rates[1][metric],
                ALPHA if metric == experiment.metric else ALPHA / (len(_METRICS) - 1),
            ),
        )
        for metric in _METRICS
    }
    primary = compared.pop(experiment.metric)
    is_unsound = is_imbalanced(*(size.visitors + size.observed for size in sizes))
    return Report(
        experiment,
        (sizes[0], sizes[1]),
        primary,
        tuple(compared.values()),
        ExperimentVerdict.UNSOUND if is_unsound else _verdict(experiment, primary.effect),
    )


def sentence(summary: Report) -> str:
    """The verdict in words."""
    found = summary.primary.effect
    if summary.verdict is ExperimentVerdict.UNSOUND:
        return _t("The arms should have the same size and do not: visitors of one arm were lost. No result is valid.")
    if found is None or not found.is_known:
        if summary.verdict is ExperimentVerdict.WAITING:
            return _t("No decision yet: there are too few visitors.")
        return _t("Ended with too few visitors: nothing can be said about the difference.")
    values = {
        "metric": summary.experiment.get_metric_display(),
        "difference": points(found.difference),
        "low": points(found.low),
        "high": points(found.high),
    }
    sentences = {
        ExperimentVerdict.WAITING: _t("No decision yet: %(metric)s %(difference)s (%(low)s to %(high)s)."),
        ExperimentVerdict.TREATMENT: _t("The treatment is better: %(metric)s %(difference)s (%(low)s to %(high)s)."),
        ExperimentVerdict.CONTROL: _t("The control is better: %(metric)s %(difference)s (%(low)s to %(high)s)."),
        ExperimentVerdict.NO_DIFFERENCE: _t(
            "No difference was found: %(metric)s %(difference)s (%(low)s to %(high)s)."
        ),
    }
    return sentences[summary.verdict] % values


def points(difference: float) -> str:
    """A difference of rates in percentage points."""
    return f"{fixed(100 * difference, 1, signed=True)} pp"


def _verdict(experiment: Experiment, found: Effect | None) -> ExperimentVerdict:
    if found is None or not found.excludes_zero:
        is_over = experiment.state == Experiment.State.ENDED
        return ExperimentVerdict.NO_DIFFERENCE if is_over else ExperimentVerdict.WAITING
    is_better_when_higher = experiment.metric == Experiment.Metric.HELPFUL
    is_treatment = (found.difference > 0) == is_better_when_higher
    return ExperimentVerdict.TREATMENT if is_treatment else ExperimentVerdict.CONTROL
