"""What the debug panel draws: the pipeline and its boxes, the waterfalls, and texts beside each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.debugging.diagram import ROWS, Diagram, Step, StepState, narrow, wide, wrapped
from chat.debugging.differences import differing
from chat.debugging.waterfall import answer_bars, search_bars

NAMES = [name for row in ROWS for slot in row for name in ([slot] if isinstance(slot, str) else slot)]
TIMINGS = {
    "reformulate": 2.0, "classify": 1.0, "legs": 20.0, "lexical": 8.0, "vector": 19.0, "scores": 2.0, "fuse": 1.0,
    "rerank": 10.0, "load": 4.0, "total": 40.0,
}  # fmt: skip


def steps(detail: str = "a few words of detail") -> list[Step]:
    return [Step(name, name.title(), (detail, detail), StepState.OK, "3 ms") for name in NAMES]


@pytest.mark.parametrize("draw", [wide, narrow])
@given(detail=st.text(max_size=200))
def test_boxes_stay_inside_and_apart(draw: type[Diagram], detail: str) -> None:
    diagram = draw(steps(detail))  # type: ignore[arg-type, call-arg]
    assert [box.step.name for box in diagram.boxes] == NAMES
    for number, box in enumerate(diagram.boxes):
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= diagram.width
        assert box.y + box.height <= diagram.height
        assert all(line.y < box.y + box.height for line in box.lines)
        for other in diagram.boxes[:number]:
            apart_across = box.x >= other.x + other.width or other.x >= box.x + box.width
            assert apart_across or box.y >= other.y + other.height or other.y >= box.y + box.height


@pytest.mark.parametrize("draw", [wide, narrow])
def test_every_step_is_reached_by_an_arrow(draw: type[Diagram]) -> None:
    diagram = draw(steps())  # type: ignore[arg-type, call-arg]
    tips = [tuple(map(int, arrow.head.split()[0].split(","))) for arrow in diagram.arrows]
    for box in diagram.boxes[1:]:
        assert any(tip in {(box.x, box.middle), (box.centre, box.y)} for tip in tips), box.step.name
    # Both retrievers lead to fusion: one arrow more than there are boxes to reach, and one more.
    assert len(tips) == len(diagram.boxes)


def test_each_detail_has_a_line_before_one_has_two() -> None:
    long = "a very long question that would fill all the lines of its box and then some more of them"
    question = Step("question", "Question", (long, "second", "third"))
    box = next(box for box in wide([question, *steps()[1:]]).boxes if box.step is question)
    assert [line.text for line in box.lines][1:] == ["second", "third"]
    assert box.lines[0].text.endswith("…")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", ()),
        ("short", ("short",)),
        ("two words here", ("two words", "here")),
        ("one two three four five six", ("one two", "three fou…")),
        ("abcdefghijklmnopqrstuvwxyz", ("abcdefghij", "klmnopqrs…")),
        ("東京都庁舎の住所", ("東京都庁舎", "の住所")),
    ],
)
def test_text_is_wrapped(text: str, rows: tuple[str, ...]) -> None:
    assert wrapped(text, 10, 2) == rows


def test_stages_follow_each_other_and_the_legs_begin_together() -> None:
    bars = {bar.name: bar for bar in search_bars({**TIMINGS, "novelty": 5.0})}
    assert [bar.start_ms for bar in bars.values()] == [0.0, 2.0, 3.0, 3.0, 3.0, 23.0, 25.0, 26.0, 36.0, None]
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
        ({"searched": 5.0, "first_token": 6.0, "total": 10.0}, ["search", "wait", "write and check"]),
    ],
)
def test_what_timings_cannot_tell_is_left_out(moments: dict[str, float], names: list[str]) -> None:
    assert [bar.name for bar in answer_bars(moments)] == names


def test_words_that_differ_are_marked_on_both_sides() -> None:
    before, after = differing("The pump weighs 3 kg.", "The old pump weighs 4 kg.")
    assert [change.text.strip() for change in before if change.changed] == ["3"]
    assert [change.text.strip() for change in after if change.changed] == ["old", "4"]


@given(st.text(), st.text())
def test_the_stretches_make_the_text(first: str, second: str) -> None:
    before, after = differing(first, second)
    assert "".join(change.text for change in before) == first
    assert "".join(change.text for change in after) == second
