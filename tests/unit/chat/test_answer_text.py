"""Whether an answer's text shows rows itself, so that its table is not shown twice."""

import pytest

from chat.pages.answer_text import has_table_rows


@pytest.mark.parametrize("separators", ["|---|---|", "| --- | --- |", "| :--- | ---: |", "|:-:|:-:|", "| - | - |"])
def test_rows_below_any_form_of_a_head_are_found(separators):
    assert has_table_rows(f"The parts:\n\n| Part | Price |\n{separators}\n| SK-9920 | 14.90 |")


@pytest.mark.parametrize(
    "text", ["The price is 14.90.", "- one\n- two", "Pipes | and\n---\n dashes", "| - not a head\n", "a\n| -5 | 3 |"]
)
def test_other_texts_have_no_rows(text):
    assert not has_table_rows(text)
