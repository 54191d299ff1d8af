"""The outcomes of an experiment's answers, one row for each visitor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db import connection
from django.utils import timezone

from evaluation.experiments.assignment import Arm
from evaluation.experiments.statistics.samples import Flags, Floats, Sample
from evaluation.models import Experiment, Judgement, Score

HELPFUL, GROUNDEDNESS, REFUSAL, FAILURE = "helpful", "groundedness", "refusal", "failure"
LATENCY, LATENCY_MEAN = "latency", "latency_mean"
# The order of the last columns of the statement below.
OUTCOMES = (HELPFUL, GROUNDEDNESS, REFUSAL, FAILURE, LATENCY, LATENCY_MEAN)

# An answer's outcomes: NULL where there is none. A repeated answer's time says nothing about its search.
_ANSWERS = """
    SELECT
        {subject} AS subject,
        {arm} AS arm,
        answer.created_at AS asked_at,
        feedback.helpful::int AS helpful,
        feedback.created_at AS rated_at,
        score.score AS groundedness,
        CASE WHEN answer.status = 'completed' THEN answer.refused::int END AS refusal,
        (answer.status = 'failed')::int AS failure,
        CASE
            WHEN answer.status = 'completed' AND NOT answer.timings_ms ? 'repeated'
            THEN GREATEST((answer.timings_ms->>'total')::float, 0.01)
        END AS milliseconds,
        {off_profile} AS off_profile
    FROM {source}
    LEFT JOIN chat_feedback AS feedback ON feedback.answer_id = answer.id
    LEFT JOIN evaluation_judgement AS judgement ON judgement.answer_id = answer.id AND judgement.judge = %(judge)s
    LEFT JOIN evaluation_score AS score ON score.judgement_id = judgement.id AND score.metric = %(metric)s
"""
# Only what was asked within the window after the visitor's first answer counts, and only once the window is over: a
# visitor's number never changes after it was looked at, and visitors are in the order of their first answers.
_VISITORS = """
    WITH answers AS ({answers}),
    timed AS (SELECT *, MIN(asked_at) OVER (PARTITION BY subject) AS began FROM answers),
    visitors AS (
        SELECT began, subject, {packed} AS packed
        FROM timed
        WHERE asked_at < began + %(window)s::interval
        GROUP BY subject, arm, began
    )
    SELECT string_agg(packed, '' ORDER BY began, subject) FROM visitors
"""
_COLUMNS = (
    "(arm = 'treatment')::int",
    "(began + %(window)s::interval <= %(until)s)::int",
    "COUNT(*)",
    "SUM(off_profile)",
    "AVG(helpful) FILTER (WHERE rated_at < began + %(window)s::interval)",
    "AVG(groundedness)",
    "AVG(refusal)",
    "AVG(failure)",
    "AVG(LN(milliseconds))",
    "AVG(milliseconds)",
)
# Eight bytes a number: to make objects of a hundred thousand rows takes as long as to reckon them.
_PACKED = " || ".join(f"float8send(COALESCE(({column})::float8, 'NaN'))" for column in _COLUMNS)
_EXPOSED = _ANSWERS.format(
    subject="exposure.subject",
    arm="exposure.arm",
    off_profile=(
        "(answer.status = 'completed' AND answer.profile_version_id IS DISTINCT FROM "
        "CASE exposure.arm WHEN 'treatment' THEN %(treatment)s ELSE %(control)s END::bigint)::int"
    ),
    source=(
        "evaluation_exposure AS exposure JOIN chat_answer AS answer "
        "ON answer.id = exposure.answer_id AND exposure.experiment_id = %(experiment)s"
    ),
)
_EVERYBODY = _ANSWERS.format(
    subject="COALESCE('user:' || conversation.owner_id, conversation.visitor)",
    arm="'control'",
    off_profile="0",
    source=(
        "chat_answer AS answer JOIN chat_conversation AS conversation ON conversation.id = answer.conversation_id "
        "AND (conversation.owner_id IS NOT NULL OR conversation.visitor <> '') AND answer.method = '' "
        "AND answer.created_at > %(since)s AND answer.status IN ('completed', 'stopped', 'failed')"
    ),
)


@dataclass(frozen=True, slots=True)
class Visitors:
    """Those whose time of observation is over, in the order of their first answers; and how many are still observed.

    ``values`` has a column for each of ``OUTCOMES``, NaN where a visitor has none. ``off_profile`` counts the complete
    answers that were not searched with the profile of their arm.
    """

    treated: Flags
    values: Floats
    answers: Floats
    off_profile: int
    observed: Mapping[Arm, int]

    def __len__(self) -> int:
        return len(self.treated)

    def sample(self, outcome: str) -> Sample:
        """The visitors that have the outcome."""
        column = self.values[:, OUTCOMES.index(outcome)]
        known = ~np.isnan(column)
        return Sample(column[known], self.treated[known])

    def presence(self, outcome: str) -> Sample:
        """Whether each visitor has the outcome, as 1 or 0."""
        return Sample((~np.isnan(self.values[:, OUTCOMES.index(outcome)])).astype(np.float64), self.treated)

    def count(self, arm: Arm) -> int:
        return int(np.count_nonzero(self.treated == (arm is Arm.TREATMENT)))

    def answers_of(self, arm: Arm) -> int:
        return int(self.answers[self.treated == (arm is Arm.TREATMENT)].sum())


def visitors_of(experiment: Experiment) -> Visitors:
    """The visitors of an experiment, until now or until it ended."""
    return _visitors(
        _EXPOSED,
        experiment.observation_hours,
        experiment.ended_at or timezone.now(),
        experiment=experiment.pk,
        control=experiment.control_id,
        treatment=experiment.treatment_id,
    )


def visitors_since(since: datetime, observation_hours: int) -> Visitors:
    """All visitors with answers since then, as the control of an experiment would see them: for planning."""
    return _visitors(_EVERYBODY, observation_hours, timezone.now(), since=since)


def _visitors(answers: str, observation_hours: int, until: datetime, **parameters: int | datetime | None) -> Visitors:
    with connection.cursor() as cursor:
        cursor.execute(
            _VISITORS.format(answers=answers, packed=_PACKED),
            {
                "judge": Judgement.Judge.OFFLINE.value,
                "metric": Score.Metric.GROUNDEDNESS.value,
                "window": f"{observation_hours} hours",
                "until": until,
                **parameters,
            },
        )
        (packed,) = cursor.fetchone()
    rows = np.frombuffer(packed or b"", dtype=">f8").reshape(-1, len(_COLUMNS)).astype(np.float64)
    treated, is_over = rows[:, 0] == 1, rows[:, 1] == 1
    return Visitors(
        treated=treated[is_over],
        values=rows[is_over, -len(OUTCOMES) :],
        answers=rows[is_over, 2],
        off_profile=int(rows[:, 3].sum()),
        observed={
            Arm.CONTROL: int(np.count_nonzero(~is_over & ~treated)),
            Arm.TREATMENT: int(np.count_nonzero(~is_over & treated)),
        },
    )
