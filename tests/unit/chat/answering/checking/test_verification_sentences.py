"""The sentences of an answer, and which markers speak for each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.answering.checking.citations import find_cited_sentences, find_markers, group_markers


def sentences(text):
    return [
        (text[each.start : each.end], each.markers)
        for each in find_cited_sentences(text, group_markers(find_markers(text)))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One thing. [1] Another. [2][3]", [("One thing.", (1,)), ("Another.", (2, 3))]),
        ("One thing [1]. Another.", [("One thing [1].", (1,)), ("Another.", ())]),
        ("One thing.[1] Another.[2]", [("One thing.", (1,)), ("Another.", (2,))]),
        ("First. Second. [1] Third.", [("First.", ()), ("Second.", (1,)), ("Third.", ())]),
        ("One [1] and two [2].", [("One [1] and two [2].", (1, 2))]),
        ("First.\n\nSecond. [1]", [("First.", ()), ("Second.", (1,))]),
        ("First.\n\n[2]", [("First.", (2,))]),
        ("So:\n\n- An item [1]\n- More\n2. Last [2]", [("So:", ()), ("An item", (1,)), ("More", ()), ("Last", (2,))]),
        ("## Limits\nIt is hot. [1]", [("It is hot.", (1,))]),
        ("**Limits**\n\nIt is hot.", [("It is hot.", ())]),
        ("| Pump | Bar |\n|---|---|\n| MX-1 | 10 | [1]", [("| MX-1 | 10 |", (1,))]),
        ("Run it.\n\n```\nrm x[2]. Then y.\n```\n[1]\n\nDone now.", [("Run it.", ()), ("Done now.", ())]),
        ("Use `row[2]` and row[0]. [1]", [("Use `row[2]` and row[0].", (1,))]),
        ("- \nAn item. [1]", [("An item.", (1,))]),
        ("Dr. Jansen wrote it. [1]", [("Dr. Jansen wrote it.", (1,))]),
    ],
)
def test_markers_speak_for_the_sentences_before_them(text, expected):
    assert sentences(text) == expected


@given(
    st.lists(st.sampled_from(["A word. ", "Two [1]", "[2]", "\n\n", "- ", "| x |", "\n", "```", "# H", "1. ", "é."]))
)
def test_sentences_are_in_order_and_never_overlap(pieces):
    text = "".join(pieces)
    end = 0
    for sentence in find_cited_sentences(text, group_markers(find_markers(text))):
        assert end <= sentence.start < sentence.end <= len(text)
        assert text[sentence.start : sentence.end].strip() == text[sentence.start : sentence.end]
        end = sentence.end
