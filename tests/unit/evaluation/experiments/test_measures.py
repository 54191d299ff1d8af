"""How the numbers of an experiment are written, in both languages."""

from __future__ import annotations

import math

import pytest
from django.utils import translation

from evaluation.experiments import outcomes
from evaluation.experiments.measures import MEASURES

RATE, SCORE, TYPICAL, MEAN = (
    MEASURES[outcome] for outcome in (outcomes.HELPFUL, outcomes.GROUNDEDNESS, outcomes.LATENCY, outcomes.LATENCY_MEAN)
)
SLOW = math.log(1200)


@pytest.mark.parametrize(
    ("said", "english", "dutch"),
    [
        (lambda: RATE.value(0.125), "12.5%", "12,5%"),
        (lambda: SCORE.value(0.85), "0.850", "0,850"),
        (lambda: TYPICAL.value(SLOW), "1,200 ms", "1.200 ms"),
        (lambda: MEAN.value(1200.4), "1,200 ms", "1.200 ms"),
        (lambda: MEAN.value(math.nan), "–", "–"),
        (lambda: RATE.difference(0.125), "+12.5 pp", "+12,5 pp"),
        (lambda: SCORE.difference(-0.0125), "-0.013", "-0,013"),
        (lambda: TYPICAL.difference(math.log(0.875)), "-12.5%", "-12,5%"),
        (lambda: MEAN.difference(1200), "+1,200 ms", "+1.200 ms"),
        (lambda: MEAN.difference(-math.inf), "–∞", "–∞"),
        (lambda: RATE.tick(0.025), "+2.5", "+2,5"),
        (lambda: SCORE.tick(-0.05), "-0.05", "-0,05"),
        (lambda: TYPICAL.tick(math.log(1.125)), "+12.5", "+12,5"),
        (lambda: MEAN.tick(1200), "+1,200", "+1.200"),
        (lambda: MEAN.tick(0.0), "0", "0"),
    ],
)
def test_numbers_are_written_as_the_reader_writes_them(said, english: str, dutch: str) -> None:
    with translation.override("en"):
        assert said() == english
    with translation.override("nl"):
        assert said() == dutch
