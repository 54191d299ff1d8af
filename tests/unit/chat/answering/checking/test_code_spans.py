"""The places of code in a text, whole or still being written."""

import pytest

from chat.answering.checking.citations import blank_out_code, find_code_spans, find_unfinished_markup


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("plain [1]", []),
        ("Use `values[0]` or `a`.", ["`values[0]`", "`a`"]),
        ("Use ``a ` b`` now", ["``a ` b``"]),
        ("A stray ` in a line. [1]", []),
        ("Not `over\n\na paragraph`", []),
        ("But `over\na line`", ["`over\na line`"]),
        ("- one `\n- two ` [1]", []),
        ("So:\n```sh\nrun[1]\n```\nDone", ["```sh\nrun[1]\n```"]),
        ("```\n~~~\n```", ["```\n~~~\n```"]),
        ("````\n```\n````\n[1]", ["````\n```\n````"]),
        ("~~~ `x`\na\n~~~\nb", ["~~~ `x`\na\n~~~"]),
        ("```\nopen [1]", ["```\nopen [1]"]),
        ("```sh\na\n``` b\n", ["```sh\na\n``` b\n"]),
        ("```in``` a line", ["```in```"]),
        ("- ```\n  a[1]\n  ```\n- b [1]", ["```\n  a[1]\n  ```"]),
        ("> ```\n> a\n> ```\nb", ["```\n> a\n> ```"]),
        ("A ` stray\n```\ncode\n```\nand `", ["```\ncode\n```"]),
    ],
)
def test_code_stands_between_fences_and_backticks(text, code):
    assert [text[each.start : each.end] for each in find_code_spans(text)] == code
    left = blank_out_code(text)
    assert len(left) == len(text)
    assert left.count("\n") == text.count("\n")
    assert not any(each in left for each in code)


def test_a_block_says_its_fence_and_whether_it_ends():
    assert [(each.fence, each.is_open) for each in find_code_spans("`a`\n~~~~\nb\n~~~~\n```c\nd")] == [
        ("", False),
        ("~~~~", False),
        ("```", True),
    ]


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("The pump ", "The pump "),
        ("Use `val", "Use "),
        ("Use `a` ", "Use `a` "),
        ("A ` stray.\n\nNext", "A ` stray.\n\nNext"),
        ("So:\n```s", "So:\n"),
        ("```sh\nrun\nval", "```sh\nrun\nval"),
        ("Ten bar [1, ", "Ten bar "),
        ("Ten bar ⟦2", "Ten bar "),
        ("Ten bar [1]", "Ten bar [1]"),
        ("```\na\n```\nb", "```\na\n```\nb"),
    ],
)
def test_what_may_still_become_code_or_a_marker_is_undecided(text, sure):
    assert text[: find_unfinished_markup(text)] == sure
