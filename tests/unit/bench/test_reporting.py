from __future__ import annotations

from pathlib import Path

import pytest

from bench.reporting import figure, interval, replace_section, table
from evaluation.exceptions import EvaluationError


def test_a_table_has_a_line_a_row() -> None:
    assert table(["a", "b"], [["1", "2"]]).splitlines() == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]


@pytest.mark.parametrize(
    ("value", "shown"), [(0.7171, ".717"), (1.0, "1.000"), (-0.0264, "−.026"), (0.0, ".000"), (-0.0001, ".000")]
)
def test_figures_are_short(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_an_interval_shows_its_direction() -> None:
    assert interval(0.021, -0.004, 0.038) == "+.021 [−.004 .038]"
    assert interval(-0.021, -0.04, -0.001) == "−.021 [−.040 −.001]"


def test_only_the_section_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "quality.md"
    page.write_text("before\n<!-- ranking -->\nold \\1\n<!-- /ranking -->\nafter\n", encoding="utf-8")
    replace_section(page, "ranking", "new \\1")
    assert page.read_text() == "before\n<!-- ranking -->\nnew \\1\n<!-- /ranking -->\nafter\n"


@pytest.mark.parametrize(
    "content",
    ["", "<!-- ranking -->", "<!-- /ranking --><!-- ranking -->", "<!-- ranking --><!-- ranking --><!-- /ranking -->"],
)
def test_a_page_without_its_marks_is_left_alone(tmp_path: Path, content: str) -> None:
    page = tmp_path / "quality.md"
    page.write_text(content)
    with pytest.raises(EvaluationError, match="once each"):
        replace_section(page, "ranking", "new")
    assert page.read_text() == content


def test_a_page_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="cannot be rewritten"):
        replace_section(tmp_path / "none.md", "ranking", "new")
