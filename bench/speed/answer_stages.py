"""Measure the processor time of each stage of an answer, from tracing spans in all threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser

from bench.reporting import Report
from chat.types import FailedEvent
from core import tracing
from evaluation.exceptions import UntrustworthyMeasurement
from evaluation.runs.measurement import measure_reply
from evaluation.statistics import Percentiles, percentiles
from retrieval.index.active_embedder import encode_query
from retrieval.rights.search_filters import build_filters

WARM_UP = 5
REFERENCE = "How long is the warranty on a wet-rotor pump if I send in the commissioning card?"
REFERENCE_ROUNDS = 50
REST = "rest"


@dataclass(slots=True)
class StageRun:
    """The processor time of each stage (in seconds) and of each answer (in milliseconds).

    The time of a stage does not include nested stages. ``first_token_ms`` is elapsed time. ``reference_ms``, the
    processor time to encode the question REFERENCE, shows the machine's speed.
    """

    answers: int = 0
    stages: dict[str, float] = field(default_factory=dict)
    totals_ms: list[float] = field(default_factory=list)
    first_token_ms: list[float] = field(default_factory=list)
    reference_ms: float = 0.0

    def mean_ms(self) -> dict[str, float]:
        known = {stage: 1000 * seconds / self.answers for stage, seconds in self.stages.items()}
        known[REST] = max(0.0, sum(self.totals_ms) / self.answers - sum(known.values()))
        return dict(sorted(known.items(), key=lambda pair: -pair[1]))

    def total(self) -> Percentiles:
        return percentiles(self.totals_ms)

    def first_token(self) -> Percentiles:
        return percentiles(self.first_token_ms)


@dataclass(slots=True)
class _OpenSpan:
    name: str
    began: float
    within: float = 0.0


class StageClock:
    """A backend for tracing that sums the processor time of all spans with the same name, in seconds.

    The time of a span does not include the spans inside it.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()
        self._local = threading.local()

    def begin(self, name: str, attributes: dict[str, tracing.Attribute]) -> _OpenSpan:
        return _OpenSpan(name, time.thread_time())

    def enter(self, span: _OpenSpan) -> _OpenSpan:
        self._get_stack().append(span)
        return span

    def leave(self, token: _OpenSpan) -> None:
        self._get_stack().remove(token)

    def end(self, span: _OpenSpan, failure: str) -> None:
        taken = time.thread_time() - span.began
        if stack := self._get_stack():
            stack[-1].within += taken
        with self._lock:
            self.seconds[span.name] = self.seconds.get(span.name, 0.0) + max(0.0, taken - span.within)

    def annotate(self, attributes: dict[str, tracing.Attribute]) -> None:
        """Do nothing: only the times of spans are used."""

    def _get_stack(self) -> list[_OpenSpan]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        stack: list[_OpenSpan] = self._local.stack
        return stack


def measure_answer_stages(questions: Sequence[str], collection: str, report: Report) -> StageRun:
    """Ask each question once, as a visitor, and return the times, without the first WARM_UP questions.

    No answer is saved. Raises: UntrustworthyMeasurement if a question was not answered; InvalidQuery for a
    collection that is not public.
    """
    result = StageRun(reference_ms=_measure_reference_query_ms())
    filters = build_filters(AnonymousUser(), collection)
    for number, question in enumerate(questions):
        report("asking", number, len(questions))
        clock = StageClock()
        tracing.set_span_backend(clock)
        began = time.process_time()
        try:
            reply = async_to_sync(measure_reply)(question, filters)
        finally:
            tracing.set_span_backend(None)
        if reply.end is None or isinstance(reply.end, FailedEvent):
            raise UntrustworthyMeasurement(f"The question {question!r} was not answered.")
        if number < WARM_UP:
            continue
        result.answers += 1
        result.totals_ms.append((time.process_time() - began) * 1000)
        for stage, seconds in clock.seconds.items():
            result.stages[stage] = result.stages.get(stage, 0.0) + seconds
        if reply.first_ms is not None:
            result.first_token_ms.append(reply.first_ms)
    return result


def _measure_reference_query_ms() -> float:
    taken = []
    for number in range(REFERENCE_ROUNDS):
        began = time.process_time()
        encode_query(f"{REFERENCE} {number}")
        taken.append((time.process_time() - began) * 1000)
    return percentiles(taken).p50
