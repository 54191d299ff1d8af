"""The sources that markers refer to, and the support of a sentence."""

import pytest

from chat.answering.checking.citations import find_markers
from chat.answering.checking.verification import verify_citations
from tests.unit.chat.answering.test_evidence import source

CONTENT = """Before the work:

- Switch the pump off.
- Close both valves.
- Let it cool.

The working pressure is 10 bar. The test pressure is
1.5 times the working pressure.

It weighs 3450 grams. The pump must not run dry.
"""
WARRANTY = "The warranty lasts two years. Returns are free within 30 days of delivery."


def verified(text):
    citations = verify_citations(text, [source(CONTENT), source("Nothing of use is said here.", marker=2)]).citations
    for citation in citations:
        if citation.marker == 1:
            assert citation.quote == CONTENT[citation.start - 100 : citation.end - 100]
    return [(citation.marker, citation.quote) for citation in citations]


def test_a_sentence_over_two_lines_is_quoted_as_it_stands():
    text = "The working pressure is 10 bar. The test pressure is\n1.5 times the working pressure. [1]"
    assert verified(text) == [(1, "The test pressure is\n1.5 times the working pressure.")]


@pytest.mark.parametrize("said", ["See ⟦2⟧: it has `row[3]` and four legs", "See ⟦2⟧: it has `row⟦3⟧` and four legs"])
def test_numbers_in_brackets_of_a_document_are_found_in_either_writing(said):
    content = "A table. See [2]: it has `row[3]` and four legs. It is blue."
    (citation,) = verify_citations(f"{said}. [1]", [source(content)]).citations
    assert citation.quote == "See [2]: it has `row[3]` and four legs."
    assert (citation.start, citation.support) == (100 + content.index("See"), 1.0)


def test_a_full_stop_behind_a_marker_is_no_part_of_what_follows():
    found = verify_citations("It weighs 3450 grams [1]. Close both valves [1].", [source(CONTENT)]).citations
    assert [(each.quote, each.support) for each in found] == [("It weighs 3450 grams", 1.0), ("Close both valves", 1.0)]


def test_other_words_are_traced_to_what_they_come_closest_to():
    (citation,) = verify_citations("The pump has a weight of 3450 grams [1].", [source(CONTENT)]).citations
    assert citation.quote == "It weighs 3450 grams."
    assert 0.9 < citation.support < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "Pump 3 bar [1][1]. Valve 5 bar [1].",
        "| part | pressure |\n|---|---|\n| Pump 3 bar [1] | [1] |\n| Valve 5 bar [1] | |",
        "- Pump 3 bar [1] [1]\n- Valve 5 bar [1]",
        "Pump 3 bar [1].\n\n[1]\n\nValve 5 bar `row[1]`:\n\n```\nrow[1]\n```\n\n[1]",
    ],
)
def test_every_marker_has_its_own_citation_at_its_position(text):
    citations = verify_citations(text, [source("Pump 3 bar. Valve 5 bar `row[1]`:\n\n```\nrow[1]\n```\n")]).citations
    places = [(marker.start, marker.end) for marker in find_markers(text)]
    assert [(each.marker_start, each.marker_end) for each in citations] == places
    assert len(places) == 3
    pump, repeated, valve = (citation.quote for citation in citations)
    assert pump == repeated
    assert "Pump" in pump
    assert "Pump" not in valve
