from __future__ import annotations

from typing import NotRequired, TypedDict


class ExpectedPassagePayload(TypedDict):
    """An expected passage in the result of a question.

    ``rank`` is None if the search did not find it. ``resolved`` is false if the documents no longer contain it.
    """

    source: str
    quote: str
    grade: int
    rank: int | None
    resolved: bool


class MeasuredCitationPayload(TypedDict):
    marker: int
    source: str
    title: str
    section: str
    quote: str


class UnmetExpectationsPayload(TypedDict, total=False):
    """The expectations that an answer does not meet. ``too_long`` is the number of characters above the limit."""

    missing: list[str]
    forbidden: list[str]
    too_long: int


class MetricJudgementPayload(TypedDict, total=False):
    score: float
    reason: str
    error: str


class MeanPayload(TypedDict):
    mean: float
    low: float
    high: float
    questions: int


class PercentilesPayload(TypedDict):
    p50: float
    p95: float


class RunUsagePayload(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class JudgedMetricPayload(TypedDict):
    """The mean of a judge's scores, missing if there are none, and the number of errors."""

    mean: NotRequired[float]
    low: NotRequired[float]
    high: NotRequired[float]
    questions: NotRequired[int]
    errors: int


class JudgementPayload(TypedDict):
    judges: list[str]
    metrics: dict[str, JudgedMetricPayload]


class AnswerFiguresPayload(TypedDict, total=False):
    """The figures that only a run with answers has. A figure that was not measured is missing."""

    first_token_ms: PercentilesPayload
    usage: RunUsagePayload
    judged: JudgementPayload


class RunSummaryPayload(AnswerFiguresPayload, total=False):
    """The figures of a finished run; empty before its end.

    ``latency_ms`` has the median and the 95th percentile of the time that a question took, in milliseconds.
    """

    questions: int
    metrics: dict[str, MeanPayload]
    latency_ms: PercentilesPayload


class SearchFiguresPayload(TypedDict):
    """The figures of one embedder.

    ``first`` is the share of questions whose first passage is right, ``milliseconds`` the median time of a search.
    """

    ndcg: float
    first: float
    milliseconds: float


class EmbedderComparisonPayload(TypedDict):
    """The figures of the old and the new embedder on the evaluation set ``set``; empty: on all sets together.

    ``difference`` is the mean difference of nDCG, with its interval from ``low`` to ``high``.
    """

    set: str
    questions: int
    before: SearchFiguresPayload
    after: SearchFiguresPayload
    low: float
    high: float
    difference: float
