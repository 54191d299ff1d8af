"""What the debug panel draws: the waterfalls, and texts beside each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.debugging.panel import answer_bars, search_bars

TIMINGS = {
    "reformulate": 2.0, "classify": 1.0, "legs": 20.0, "lexical": 8.0, "vector": 19.0, "scores": 2.0, "fuse": 1.0,
    "rerank": 10.0, "load": 4.0, "total": 40.0,
}  # fmt: skip


def test_stages_follow_each_other_and_the_legs_begin_together() -> None:
    bars = {bar.name: bar for bar in search_bars(TIMINGS)}
    assert [bar.start_ms for bar in bars.values()] == [0.0, 2.0, 3.0, 3.0, 3.0, 23.0, 25.0, 26.0, 36.0]
    assert list(bars)[:5] == ["reformulate", "classify", "legs", "vector", "lexical"]
    assert bars["vector"].nested
    assert (bars["legs"].left, bars["legs"].width) == (7.5, 50.0)
    assert "total" not in bars
    assert bars["load"].left + bars["load"].width == 100.0
    assert search_bars({}) == ()


@given(st.dictionaries(st.sampled_from(sorted(TIMINGS)), st.floats(0, 1e6)))
def test_no_bar_leaves_the_waterfall(timings: dict[str, float]) -> None:
    for bar in search_bars(timings):
        assert 0 <= bar.left <= 100
        assert bar.left + bar.width <= 100.02


def test_an_answer_is_searched_awaited_written_and_checked() -> None:
    moments = {"searched": 50.0, "first_token": 250.0, "written": 900.0, "total": 1000.0}
    bars = [(bar.name, bar.start_ms, bar.milliseconds) for bar in answer_bars(moments, 40.0)]
    assert bars == [
        ("search", 0.0, 40.0),
        ("context", 40.0, 10.0),
        ("wait", 50.0, 200.0),
        ("write", 250.0, 650.0),
        ("check", 900.0, 100.0),
    ]


@pytest.mark.parametrize(
    ("moments", "names"),
    [
        ({}, []),
        ({"total": 10.0}, ["answer"]),
        ({"searched": 5.0, "total": 10.0}, ["search", "decide"]),
    ],
)
def test_what_timings_cannot_tell_is_left_out(moments: dict[str, float], names: list[str]) -> None:
    assert [bar.name for bar in answer_bars(moments)] == names
