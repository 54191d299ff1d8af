"""The clock of stages: what a span takes belongs to it alone, in whichever thread it runs."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from bench.speed.answer_stages import REST, StageClock, StageRun
from core import tracing


def test_a_stage_counts_without_the_stages_within_it(monkeypatch):
    """Each reading of the clock is a second later than the one before."""
    ticks = count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(ticks)))
    clock = StageClock()
    monkeypatch.setattr(tracing, "_spans", clock)
    with tracing.span("search"):
        with tracing.span("fusion"), pytest.raises(ValueError, match="late"), tracing.span("rerank"):
            raise ValueError("late")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(tracing.span("retriever")(lambda: None)).result()
    assert clock.seconds == {"search": 4.0, "fusion": 2.0, "rerank": 1.0, "retriever": 1.0}


def test_what_is_in_no_stage_is_the_rest():
    run = StageRun(answers=2, totals_ms=[50.0, 70.0])
    run.stages.update({"search": 0.06, "evidence": 0.02})
    assert run.mean_ms() == {"search": 30.0, REST: 20.0, "evidence": 10.0}
