from __future__ import annotations

from typing import Any

import pytest

from chat.pages.rendering import Doubt, add_doubt_remarks, count_checked, doubts

TEXT = "It weighs ten kilos [1][2]. It is **blue**. It is old [3]!"


def statement(said: str, supported: bool | None, *reasons: str) -> dict[str, Any]:
    start = TEXT.index(said)
    return {
        "start": start,
        "end": start + len(said),
        "supported": supported,
        "reasons": list(reasons),
    }


def test_only_what_was_checked_and_failed_is_in_doubt() -> None:
    statements = [
        statement("It is old", False, "words"),
        statement("It weighs ten kilos", True),
        statement("It is **blue**.", None),
    ]
    assert [(doubt.start, doubt.end) for doubt in doubts(statements)] == [(44, 53)]
    assert count_checked(statements) == 2
    assert doubts([]) == ()


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["number", "name"], "A number in it is not in the source. A name in it is not in the source."),
        (["uncited"], "It names no source."),
        (["negation"], "The source seems to say the opposite."),
        ([], "The source does not say this in these words."),
        (["a code of tomorrow"], "The source does not say this in these words."),
    ],
)
def test_reasons_are_told_in_sentences(reasons: list[str], said: str) -> None:
    (doubt,) = doubts([statement("It is old", False, *reasons)])
    assert doubt.reason == said


def test_copied_text_says_which_sentences_are_in_doubt() -> None:
    found = doubts([statement(said, False) for said in ("It weighs ten kilos", "It is **blue**.", "It is old")])
    remark = "(not supported by the sources)"
    assert add_doubt_remarks(TEXT, found) == (
        f"It weighs ten kilos [1][2]. {remark} It is **blue**. {remark} It is old [3]! {remark}"
    )
    assert add_doubt_remarks(TEXT, ()) == TEXT
    assert add_doubt_remarks("Yes", [Doubt(0, 3, "")]) == f"Yes {remark}"
