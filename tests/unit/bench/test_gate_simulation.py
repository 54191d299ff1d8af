from __future__ import annotations

import pytest

from bench.gate_simulation import refusal_rate


def test_a_handful_of_questions_proves_nothing() -> None:
    assert refusal_rate(3, differing=0.3, lost=0.3, repetitions=100, resamples=200) == 0.0


@pytest.mark.parametrize("questions", [8, 25, 100])
def test_where_nothing_was_lost_it_is_rarely_refused(questions: int) -> None:
    # 2.5 % promised; five standard errors of 400 repetitions more.
    assert refusal_rate(questions, differing=0.3, lost=0.0, repetitions=400, resamples=200) < 0.065


def test_the_more_is_lost_the_more_is_refused() -> None:
    rates = [refusal_rate(60, differing=0.1, lost=lost, repetitions=100, resamples=200) for lost in (0.0, 0.1, 0.3)]
    assert rates[0] < rates[1] < rates[2]
    assert rates[2] > 0.95


def test_shares_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="More questions differ than there are"):
        refusal_rate(10, differing=0.8, lost=0.3, repetitions=1)
