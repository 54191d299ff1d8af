"""Test the side sheet: it shows a passage and the text around it."""

import pytest

from retrieval.viewer.page import select_parts_around_passage

MARKED = '<mark id="passage">words</mark>'


@pytest.mark.parametrize(
    ("parts", "shown", "cut"),
    [
        ([], [], (False, False)),
        ([MARKED], [MARKED], (False, False)),
        (["a", "b", MARKED, "c", "d"], ["b", MARKED, "c"], (True, True)),
        ([MARKED, "b", "c"], [MARKED, "b"], (False, True)),
        (["a", "b", MARKED], ["b", MARKED], (True, False)),
        (["a", "b", "c", "d"], ["a", "b"], (False, True)),
    ],
)
def test_the_part_of_the_passage_and_the_two_beside_it_are_shown(parts, shown, cut):
    near = select_parts_around_passage(parts)
    assert (list(near.parts), (near.is_cut_before, near.is_cut_after)) == (shown, cut)
