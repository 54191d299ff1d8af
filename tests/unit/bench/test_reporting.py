import pytest

from bench.reporting import format_figure, format_interval, replace_section
from evaluation.exceptions import EvaluationError


def test_figures_are_short_and_differences_show_their_direction():
    assert [format_figure(value) for value in (0.7171, 1.0, 0.0, -0.0001)] == [".717", "1.000", ".000", ".000"]
    assert format_interval(0.021, -0.004, 0.038) == "+.021 [−.004 .038]"
    assert format_interval(-0.021, -0.04, -0.001) == "−.021 [−.040 −.001]"


@pytest.mark.parametrize(
    "content",
    ["", "<!-- ranking -->", "<!-- /ranking --><!-- ranking -->", "<!-- ranking --><!-- ranking --><!-- /ranking -->"],
)
def test_a_page_without_its_marks_is_left_alone(tmp_path, content):
    page = tmp_path / "quality.md"
    page.write_text(content)
    with pytest.raises(EvaluationError, match="once each"):
        replace_section(page, "ranking", "new")
    assert page.read_text() == content
