"""How the judges' scores are distributed."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from evaluation.dashboard.scope import DashboardScope
from evaluation.models import Judgement, Score

BINS = 10
EDGES = tuple(number / BINS for number in range(BINS + 1))
# Of these the dashboard draws the distribution, of each judge apart: their scores cannot be compared.
METRICS = (Score.Metric.GROUNDEDNESS, Score.Metric.FAITHFULNESS, Score.Metric.ANSWER_RELEVANCY)

# LEAST passes over NULL, and would put errors among the best.
_SQL = """
{judged}
SELECT score.metric,
       {judge} AS judge,
       CASE WHEN score.score IS NULL THEN -1 ELSE LEAST(floor(score.score * %(bins)s)::int, %(bins)s - 1) END AS bin,
       count(*),
       max(score.threshold)
  FROM evaluation_score AS score
  {join}
 WHERE score.metric = ANY(%(metrics)s) AND score.created_at BETWEEN %(since)s AND %(until)s
 GROUP BY 1, 2, 3
"""
# Rules judge every answer, and only who judges besides is looked up: joining all judgements takes longer than the rest.
_OF_ALL = {
    "judged": "",
    "judge": "COALESCE(judgement.judge, %(rules)s)",
    "join": "LEFT JOIN evaluation_judgement AS judgement "
    "ON judgement.id = score.judgement_id AND judgement.judge <> %(rules)s",
}
# Materialized, or every score would be led to its conversation, instead of every judgement once.
_OF_SOME = {
    "judged": """
WITH judged AS MATERIALIZED (
    SELECT judgement.id, judgement.judge
      FROM evaluation_judgement AS judgement
      JOIN chat_answer AS answer ON answer.id = judgement.answer_id
      JOIN chat_conversation AS conversation ON conversation.id = answer.conversation_id
     WHERE (%(collection)s::bigint IS NULL OR conversation.collection_id = %(collection)s) {is_open}
)
""",
    "judge": "judged.judge",
    "join": "JOIN judged ON judged.id = score.judgement_id",
}


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


def distributions(scope: DashboardScope, is_open: str = "") -> list[Distribution]:
    """The distributions of scores given in the period, by metric and judge; those without a score are left out."""
    found: dict[tuple[str, str], dict[int, int]] = {}
    thresholds: dict[tuple[str, str], float] = {}
    for metric, judge, place, number, threshold in _rows(scope, is_open):
        key = metric, judge
        found.setdefault(key, {})[place] = number
        if threshold is not None:
            thresholds[key] = max(threshold, thresholds.get(key, 0.0))
    order = {str(metric): place for place, metric in enumerate(METRICS)}
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


def _rows(scope: DashboardScope, is_open: str) -> list[tuple[str, str, int, int, float | None]]:
    """Metric, judge, bin (-1 for errors), how many scores lie in it, and their highest threshold."""
    with connection.cursor() as cursor:
        cursor.execute(
            _SQL.format(**(_OF_SOME if scope.collection or is_open else _OF_ALL)).format(is_open=is_open),
            {
                "rules": Judgement.Judge.OFFLINE.value,
                "bins": BINS,
                "metrics": [str(metric) for metric in METRICS],
                "since": scope.since,
                "until": scope.until,
                "collection": scope.collection.pk if scope.collection else None,
            },
        )
        return list(cursor.fetchall())
