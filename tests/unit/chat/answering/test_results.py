"""The order in which the results of a question are shown."""

import pytest

from chat.answering.evidence import Evidence
from chat.answering.results import rank_results
from tests.support.contexts import source

FIRST = "## Suffix of links\n\nThe suffix of source links; see `show_sourcelink`.\n"
SECOND = "## Indexes\n\nMakes an index.\n\n## `show_sourcelink` {#link}\n\nIf true, links are added.\n"
UNSURE = Evidence(0.9, {}, by_words=False, closeness={})


@pytest.mark.parametrize(
    ("question", "markers"),
    [
        ("What is show_sourcelink?", [2, 1]),
        ("Indexes?", [2, 1]),
        ("What is the suffix of links?", [1, 2]),
        ("Which suffix has show_sourcelink?", [1, 2]),
        ("?", [1, 2]),
    ],
)
def test_a_passage_with_a_section_whose_heading_is_the_question_comes_first(question, markers):
    results = [source(FIRST, marker=1), source(SECOND, marker=2)]
    assert [each.marker for each in rank_results(question, results, UNSURE)] == markers
