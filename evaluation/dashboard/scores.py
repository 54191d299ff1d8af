"""How the judges' scores are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Case, Count, F, IntegerField, Max, Value, When
from django.db.models.functions import Cast, Floor, Least

from evaluation.dashboard.scope import Scope
from evaluation.models import Judgement, Score

BINS = 10
EDGES = tuple(number / BINS for number in range(BINS + 1))
# Of these the dashboard draws the distribution, of each judge apart: their scores cannot be compared.
METRICS = (Score.Metric.GROUNDEDNESS, Score.Metric.FAITHFULNESS, Score.Metric.ANSWER_RELEVANCY)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Scores of one metric by one judge: ``counts[i]`` lie in [i / 10, (i + 1) / 10), 1 in the last."""

    metric: Score.Metric
    judge: Judgement.Judge
    counts: tuple[int, ...]
    errors: int
    threshold: float | None

    @property
    def measured(self) -> int:
        return sum(self.counts)


def distributions(scope: Scope, metrics: Sequence[str] = METRICS) -> list[Distribution]:
    """The distributions of scores given in the period, by metric and judge; those without a score are left out."""
    scores = Score.objects.filter(metric__in=metrics, created_at__gte=scope.since, created_at__lte=scope.until)
    if scope.collection is not None:
        scores = scores.filter(judgement__answer__conversation__collection=scope.collection)
    # LEAST passes over NULL, and would put errors among the best.
    bins = Case(
        When(score=None, then=Value(-1)),
        default=Least(Cast(Floor(F("score") * BINS), IntegerField()), Value(BINS - 1)),
        output_field=IntegerField(),
    )
    rows = (
        scores.order_by()
        .annotate(bin=bins)
        .values("metric", "judgement__judge", "bin")
        .annotate(number=Count("pk"), threshold=Max("threshold"))
    )
    found: dict[tuple[str, str], dict[int, int]] = {}
    thresholds: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row["metric"], row["judgement__judge"]
        found.setdefault(key, {})[row["bin"]] = row["number"]
        if row["threshold"] is not None:
            thresholds[key] = max(row["threshold"], thresholds.get(key, 0.0))
    order = {str(metric): place for place, metric in enumerate(metrics)}
    return [
        Distribution(
            Score.Metric(metric),
            Judgement.Judge(judge),
            tuple(bins_of.get(number, 0) for number in range(BINS)),
            bins_of.get(-1, 0),
            thresholds.get((metric, judge)),
        )
        for (metric, judge), bins_of in sorted(found.items(), key=lambda pair: (order[pair[0][0]], pair[0][1]))
    ]
