"""What of a sentence can be checked."""

from __future__ import annotations

import pytest

from chat.grounding.support.claims import claim_of
from chat.grounding.support.numbers import numbers_asked, numbers_held, readings
from chat.grounding.support.polarity import contradicts, negated_words
from chat.grounding.support.words import stems_of, words_of


@pytest.mark.parametrize(
    "sentence",
    [
        "Here is how to bleed the pump:",
        "What is the working pressure?",
        "I hope this helps with your pump!",
        "Sure, I can help you with the pump.",
        "The documents do not say how long the warranty lasts.",
        "Passage 3 does not provide any information about valves.",
        "There is no information about the warranty period.",
        "De documenten vermelden geen garantietermijn.",
        "Unable to answer based on the given passages.",
        "Yes.",
        "",
        "***",
    ],
)
def test_what_claims_nothing_has_no_claim(sentence: str) -> None:
    assert claim_of(sentence) is None


@pytest.mark.parametrize(
    "sentence",
    [
        "The pump weighs 3450 grams.",
        "The coolant does not contain lead.",
        "Documents without a title are not rejected.",
        "The limit:  10 bar:",
        "It is 5.",
        "De pomp bevat geen olie.",
        "De documenten vermelden het gewicht van de pomp.",
    ],
)
def test_what_can_be_checked_has_a_claim(sentence: str) -> None:
    assert claim_of(sentence) is not None


def test_talk_about_the_sources_is_no_part_of_a_claim() -> None:
    claim = claim_of("2. Based on the given passages, valves close (passage 3), according to source 2 [1].")
    assert claim is not None
    assert [word.stem for word in claim.words] == [*stems_of("valves"), *stems_of("close")]
    assert claim.numbers == ()


def test_words_stand_where_they_are_in_the_sentence() -> None:
    sentence = "- According to the documents, the pump weighs 3450 grams."
    claim = claim_of(sentence)
    assert claim is not None
    assert [sentence[word.start : word.end] for word in claim.words] == ["pump", "weighs", "3450", "grams"]
    assert len(claim.text) == len(sentence)


def test_names_are_capitalised_words_inside_a_sentence() -> None:
    claim = claim_of("Rotors were made by Mr. Pieterse of the World Health Organization (WHO) at 20 C.")
    assert claim is not None
    expected = [*stems_of("Pieterse"), *stems_of("World"), *stems_of("Health"), *stems_of("Organization")]
    assert list(claim.names) == ["mr", *expected]


@pytest.mark.parametrize(
    ("number", "values"),
    [
        ("3450", {"3450"}),
        ("3,450", {"3450", "3.45"}),
        ("3.450", {"3450", "3.45"}),
        ("1.234,5", {"1234.5"}),
        ("1,234,567.80", {"1234567.8"}),
        ("1.234.567", {"1234567", "1.234.567"}),
        ("0.50", {"0.5"}),
        ("007", {"7"}),
        ("12:30", {"12:30"}),
        ("3.2.1", {"3.2.1"}),
    ],
)
def test_a_number_is_what_english_or_dutch_may_mean_by_it(number: str, values: set[str]) -> None:
    assert readings(number) == values


def test_number_words_answer_but_do_not_ask() -> None:
    assert numbers_asked("one of two pumps, 4 valves") == (frozenset({"4"}),)
    assert {"2", "4", "3"} <= numbers_held("Twee pompen, vier kleppen, the third one")


def test_a_negation_negates_the_word_behind_it() -> None:
    assert negated_words("The pump must not be run dry.") == set(stems_of("run"))
    assert negated_words("It doesn't leak, and nothing else") == set(stems_of("leak"))
    assert negated_words("The pump may run dry.") == frozenset()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("The pump must run dry.", "The pump must not run dry.", True),
        ("The pump must not run dry.", "The pump must run dry.", True),
        ("The pump must never run dry.", "The pump must not run dry.", False),
        ("De pomp mag draaien.", "De pomp mag niet draaien.", True),
        ("De pomp werkt niet goed.", "De pomp werkt niet.", False),
        ("The pump must run dry.", "The valve must not leak.", False),
    ],
)
def test_two_sentences_contradict_each_other_when_one_negates_what_the_other_holds(
    one: str, other: str, expected: bool
) -> None:
    stems = [frozenset(word.stem for word in words_of(text)) for text in (one, other)]
    assert contradicts(stems[0], one, stems[1], other) is expected
    assert contradicts(stems[1], other, stems[0], one) is expected
