from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from django.db import connection
from django.utils import timezone

from evaluation.dashboard.scope import DashboardScope
from evaluation.models import Judgement, Score

# One row covers all days, because percentiles of single days cannot be added.
_SQL = """
SELECT (answer.completed_at AT TIME ZONE %(zone)s)::date AS day,
       count(*) FILTER (WHERE status = 'completed' AND NOT refused),
       count(*) FILTER (WHERE status = 'completed' AND refused),
       count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'stopped'),
       count(*) FILTER (WHERE degraded <> '[]'),
       count(*) FILTER (WHERE feedback.helpful),
       count(*) FILTER (WHERE NOT feedback.helpful),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY (timings_ms ->> 'total')::float / 1000) FILTER (WHERE {written}),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY (timings_ms ->> 'total')::float / 1000) FILTER (WHERE {written}),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY (timings_ms ->> 'first_token')::float / 1000)
           FILTER (WHERE {written})
  FROM chat_answer AS answer
  LEFT JOIN chat_feedback AS feedback ON feedback.answer_id = answer.id
 WHERE answer.completed_at BETWEEN %(since)s AND %(until)s {narrowed}
 GROUP BY GROUPING SETS ((1), ())
 ORDER BY 1 NULLS LAST
"""
_OF_COLLECTION = " AND answer.collection_id = %(collection)s "
# Copies of other answers are left out, because their time has no meaning.
_WRITTEN = "status = 'completed' AND repeats_id IS NULL AND NOT timings_ms ? 'repeated'"


@dataclass(frozen=True, slots=True)
class Activity:
    """The answers that were finished on one day, or on all days. Seconds are None if no answer has a time."""

    answered: int = 0
    refused: int = 0
    failed: int = 0
    stopped: int = 0
    degraded: int = 0
    helpful: int = 0
    unhelpful: int = 0
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    first_token_p50_seconds: float | None = None

    @property
    def asked_count(self) -> int:
        return self.answered + self.refused + self.failed + self.stopped

    @property
    def rated_count(self) -> int:
        return self.helpful + self.unhelpful

    @property
    def helpful_rate(self) -> float | None:
        return self.helpful / self.rated_count if self.rated_count else None

    @property
    def refusal_rate(self) -> float | None:
        complete = self.answered + self.refused
        return self.refused / complete if complete else None

    @property
    def degraded_rate(self) -> float | None:
        return self.degraded / self.asked_count if self.asked_count else None


def compute_activity(scope: DashboardScope) -> tuple[dict[date, Activity], Activity]:
    narrowed = (_OF_COLLECTION if scope.collection else "") + scope.build_readable_sql()
    sql = _SQL.format(written=_WRITTEN, narrowed=narrowed)
    parameters: dict[str, datetime | str | int | None] = {
        "zone": timezone.get_current_timezone_name(),
        "since": scope.since,
        "until": scope.until,
        "collection": scope.collection.pk if scope.collection else None,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows = {day: Activity(*figures) for day, *figures in cursor.fetchall()}
    total = rows.pop(None, Activity())
    return {day: rows.get(day, Activity()) for day in scope.dates}, total


BINS = 10
EDGES = tuple(number / BINS for number in range(BINS + 1))
# Scores of different judges cannot be compared, so the dashboard shows a distribution for each judge.
METRICS = (Score.Metric.GROUNDEDNESS, Score.Metric.FAITHFULNESS, Score.Metric.ANSWER_RELEVANCY)

# A NULL score is an error, counted in bin -1. LEAST would ignore the NULL. MATERIALIZED joins each judgement to its
# answer only once.
_SCORES = """
WITH judged AS MATERIALIZED (
    SELECT judgement.id, judgement.judge
      FROM evaluation_judgement AS judgement
      JOIN chat_answer AS answer ON answer.id = judgement.answer_id
     WHERE (%(collection)s::bigint IS NULL OR answer.collection_id = %(collection)s) {is_open}
)
SELECT score.metric,
       judged.judge,
       CASE WHEN score.score IS NULL THEN -1 ELSE LEAST(floor(score.score * %(bins)s)::int, %(bins)s - 1) END AS bin,
       count(*),
       max(score.threshold)
  FROM evaluation_score AS score
  JOIN judged ON judged.id = score.judgement_id
 WHERE score.metric = ANY(%(metrics)s) AND score.created_at BETWEEN %(since)s AND %(until)s
 GROUP BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """The scores of one metric by one judge.

    ``counts[i]`` is the number of scores from i / 10 to below (i + 1) / 10; the last one includes 1.
    """

    metric: Score.Metric
    judge: Judgement.Judge
    counts: tuple[int, ...]
    errors: int
    threshold: float | None

    @property
    def title(self) -> str:
        return f"{str(self.metric.label).capitalize()} ({self.judge.label})"

    @property
    def name(self) -> str:
        return f"{self.metric}-{self.judge}".replace("_", "-")

    @property
    def measured_count(self) -> int:
        return sum(self.counts)


def compute_distributions(scope: DashboardScope) -> list[ScoreDistribution]:
    found: dict[tuple[str, str], dict[int, int]] = {}
    thresholds: dict[tuple[str, str], float] = {}
    parameters: dict[str, datetime | int | list[str] | None] = {
        "bins": BINS,
        "metrics": [str(metric) for metric in METRICS],
        "since": scope.since,
        "until": scope.until,
        "collection": scope.collection.pk if scope.collection else None,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SCORES.format(is_open=scope.build_readable_sql()), parameters)
        for metric, judge, place, number, threshold in cursor.fetchall():
            key = metric, judge
            found.setdefault(key, {})[place] = number
            if threshold is not None:
                thresholds[key] = max(threshold, thresholds.get(key, 0.0))
    order = {str(metric): place for place, metric in enumerate(METRICS)}
    return [
        ScoreDistribution(
            Score.Metric(metric),
            Judgement.Judge(judge),
            tuple(bins_of.get(number, 0) for number in range(BINS)),
            bins_of.get(-1, 0),
            thresholds.get((metric, judge)),
        )
        for (metric, judge), bins_of in sorted(found.items(), key=lambda pair: (order[pair[0][0]], pair[0][1]))
    ]
