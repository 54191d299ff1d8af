"""Types of the JSON that evaluation stores. Pure Python."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ExpectedPassagePayload(TypedDict):
    """An expected passage of a question. ``rank`` is None if the search missed it; ``resolved`` if it still exists."""

    source: str
    quote: str
    grade: int
    rank: int | None
    resolved: bool


class MeasuredCitationPayload(TypedDict):
    """A citation of a measured answer."""

    marker: int
    source: str
    title: str
    section: str
    quote: str


class UnmetPayload(TypedDict, total=False):
    """The expectations that an answer's text does not meet. ``too_long`` counts characters."""

    missing: list[str]
    forbidden: list[str]
    too_long: int


class MetricJudgementPayload(TypedDict, total=False):
    """The judge's score from 0 to 1 with its reason, or an error."""

    score: float
    reason: str
    error: str


class MeanPayload(TypedDict):
    """A mean over ``questions``, with its 95 % bounds."""

    mean: float
    low: float
    high: float
    questions: int


class PercentilesPayload(TypedDict):
    p50: float
    p95: float


class RunUsagePayload(TypedDict):
    """The used tokens of all answers. ``cost`` is None without prices."""

    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class JudgedMetricPayload(TypedDict):
    """A mean over the scores of the judge, which is missing without scores, and the number of errors."""

    mean: NotRequired[float]
    low: NotRequired[float]
    high: NotRequired[float]
    questions: NotRequired[int]
    errors: int


class JudgedPayload(TypedDict):
    judges: list[str]
    metrics: dict[str, JudgedMetricPayload]


class AnswerFiguresPayload(TypedDict, total=False):
    """The figures that only a run of answers has. A figure that was not measured is absent."""

    first_token_ms: PercentilesPayload
    usage: RunUsagePayload
    judged: JudgedPayload


class SummaryPayload(AnswerFiguresPayload, total=False):
    """The figures of a finished run; empty before its end. ``latency_ms`` is the time of a question."""

    questions: int
    metrics: dict[str, MeanPayload]
    latency_ms: PercentilesPayload


class SearchFiguresPayload(TypedDict):
    """The figures of an embedder.

    ``first`` is the share of questions whose first passage is right, ``milliseconds`` the median of a search.
    """

    ndcg: float
    first: float
    milliseconds: float


class EmbedderFiguresPayload(TypedDict):
    """Two embedders on the evaluation set ``set``, or on all sets if it is empty.

    ``difference`` is the mean difference of nDCG, with its interval from ``low`` to ``high``.
    """

    set: str
    questions: int
    before: SearchFiguresPayload
    after: SearchFiguresPayload
    low: float
    high: float
    difference: float
