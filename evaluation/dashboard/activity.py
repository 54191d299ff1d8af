"""The number of questions and their outcomes, by day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from django.db import connection
from django.utils import timezone

from evaluation.dashboard.scope import DashboardScope

# Rows by day, and one for all of them, from a single pass: percentiles of days cannot be added up.
_SQL = """
SELECT (answer.completed_at AT TIME ZONE %(zone)s)::date AS day,
       count(*) FILTER (WHERE status = 'completed' AND NOT refused),
       count(*) FILTER (WHERE status = 'completed' AND refused),
       count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'stopped'),
       count(*) FILTER (WHERE degraded <> '[]'),
       count(*) FILTER (WHERE feedback.helpful),
       count(*) FILTER (WHERE NOT feedback.helpful),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY (timings_ms ->> 'total')::float) FILTER (WHERE {written}),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY (timings_ms ->> 'total')::float) FILTER (WHERE {written}),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY (timings_ms ->> 'first_token')::float) FILTER (WHERE {written})
  FROM chat_answer AS answer
  LEFT JOIN chat_feedback AS feedback ON feedback.answer_id = answer.id
 WHERE answer.completed_at BETWEEN %(since)s AND %(until)s {narrowed}
 GROUP BY GROUPING SETS ((1), ())
 ORDER BY 1 NULLS LAST
"""
_OF_COLLECTION = """
   AND EXISTS (SELECT FROM chat_conversation AS conversation
                WHERE conversation.id = answer.conversation_id AND conversation.collection_id = %(collection)s)
"""
# An answer that was stopped, failed or copied from an earlier one says nothing of how long an answer takes.
# A copy stays one when its original is deleted, and it has no link to it any more.
_WRITTEN = "status = 'completed' AND repeats_id IS NULL AND NOT timings_ms ? 'repeated'"


@dataclass(frozen=True, slots=True)
class Activity:
    """The answers finished in a day, or in all days. Milliseconds are None when there is no answer to measure."""

    answered: int = 0
    refused: int = 0
    failed: int = 0
    stopped: int = 0
    degraded: int = 0
    helpful: int = 0
    unhelpful: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    first_token_p50_ms: float | None = None

    @property
    def asked(self) -> int:
        return self.answered + self.refused + self.failed + self.stopped

    @property
    def rated(self) -> int:
        return self.helpful + self.unhelpful

    @property
    def helpful_rate(self) -> float | None:
        """Share of the rated answers that helped; None when nobody rated one."""
        return self.helpful / self.rated if self.rated else None

    @property
    def refusal_rate(self) -> float | None:
        """Share of the complete answers that say that the documents do not answer; None without one."""
        complete = self.answered + self.refused
        return self.refused / complete if complete else None

    @property
    def degraded_rate(self) -> float | None:
        """Share of the questions that a part of the search did not answer for; None without questions."""
        return self.degraded / self.asked if self.asked else None


def activity(scope: DashboardScope, is_open: str = "") -> tuple[dict[date, Activity], Activity]:
    """Each day of the scope, quiet ones too, and the whole; ``is_open`` is the scope's `open_sql`."""
    narrowed = (_OF_COLLECTION if scope.collection else "") + is_open
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
