"""Plain English: few sentences have the patterns that docs/writing.md avoids."""

from functools import cache

import pytest

from tests.support import prose

MOST_PER_10_000_WORDS = 25


KINDS = {
    "product": lambda: prose.read_code(prose.APPS),
    "tests": lambda: prose.read_code(["tests"]),
    "pages": prose.read_pages,
    # Labels ("What it is for") and short reports ("Nothing was deleted.") are plain for their readers.
    "messages": prose.read_messages,
}


@cache
def count_patterns(kind):
    return prose.count(KINDS[kind]())


@pytest.mark.parametrize("kind", ["product", "tests", "pages", "all"])
def test_few_sentences_have_to_be_read_twice(kind):
    counted = sum(map(count_patterns, KINDS), prose.Count()) if kind == "all" else count_patterns(kind)
    assert counted.words > 5_000
    assert counted.per_10_000 <= MOST_PER_10_000_WORDS, (
        f"{kind}: {counted.patterns}. `python -m tests.support.prose PATH` lists the sentences."
    )


@pytest.mark.parametrize(
    ("sentence", "pattern"),
    [
        ("What changes documents locks these rows.", "opens with What, Who, Whose or That"),
        ("Of both, the newer one.", "opens with a phrase before the subject"),
        ("The list holds ids.", "hold, holds, held"),
        ("It stands in the text.", "stand, stands, stood"),
        ("The rows and those of others.", "that of, those of"),
        ("Nobody reads it.", "nobody, nothing"),
        ("The page tells the reader.", "tells, told, knows"),
        ("It is written anew.", "anew, so many, so long"),
    ],
)
def test_each_pattern_is_found(sentence, pattern):
    assert list(prose.find_patterns(sentence)) == [pattern]


def test_code_and_quotations_of_a_page_are_not_counted():
    page = "The `nobody` account.\n\n```text\nNobody reads it.\n```\n\nSee [those of others](those%20of%20others.md).\n"
    found = [prose.find_patterns(place.text) for place in prose.read_page(page, "page.md")]
    assert [each for each in found if each] == [{"that of, those of": 1}]
