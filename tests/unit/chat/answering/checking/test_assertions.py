"""The checkable parts of a sentence."""

import pytest

from chat.answering.checking.support import extract_assertion
from chat.answering.checking.words import (
    contradicts,
    find_stems_of_word,
    parse_number_values,
    read_asserted_numbers,
    read_numbers,
    split_words,
)


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
def test_what_cannot_be_checked_has_no_assertion(sentence):
    assert extract_assertion(sentence) is None


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
def test_what_can_be_checked_has_an_assertion(sentence):
    assert extract_assertion(sentence) is not None


def test_talk_about_the_sources_is_no_part_of_an_assertion():
    assertion = extract_assertion(
        "2. Based on the given passages, valves close (passage 3), according to source 2 [1]."
    )
    assert [word.stem for word in assertion.words] == [*find_stems_of_word("valves"), *find_stems_of_word("close")]
    assert assertion.numbers == ()


def test_words_stand_where_they_are_in_the_sentence():
    sentence = "- According to the documents, the pump weighs 3450 grams."
    assertion = extract_assertion(sentence)
    assert [sentence[word.start : word.end] for word in assertion.words] == ["pump", "weighs", "3450", "grams"]
    assert len(assertion.text) == len(sentence)


def test_names_are_capitalised_words_inside_a_sentence():
    assertion = extract_assertion("Rotors were made by Mr. Pieterse of the World Health Organization at 20 C.")
    expected = [
        *find_stems_of_word("Pieterse"),
        *find_stems_of_word("World"),
        *find_stems_of_word("Health"),
        *find_stems_of_word("Organization"),
    ]
    assert list(assertion.names) == ["mr", *expected]


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
def test_a_number_is_what_english_or_dutch_may_mean_by_it(number, values):
    assert parse_number_values(number) == values


def test_number_words_answer_but_do_not_ask():
    assert read_asserted_numbers("one of two pumps, 4 valves") == (frozenset({"4"}),)
    assert {"2", "4", "3"} <= read_numbers("Twee pompen, vier kleppen, the third one")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("The pump must run dry.", "The pump must not run dry.", True),
        ("The pump must not run dry.", "The pump must run dry.", True),
        ("The pump must never run dry.", "The pump must not run dry.", False),
        ("De pomp mag draaien.", "De pomp mag niet draaien.", True),
        ("The pump may be run dry.", "The pump mustn't be run dry.", True),
        ("De pomp werkt niet goed.", "De pomp werkt niet.", False),
        ("The pump must run dry.", "The valve must not leak.", False),
        ("It is not possible to manage images with Terraform.", "You can use Terraform to manage images.", True),
        ("It is not possible to manage images with Terraform.", "Images cannot be managed with Terraform.", False),
    ],
)
def test_two_sentences_contradict_each_other_when_one_negates_what_the_other_holds(one, other, expected):
    stems = [frozenset(word.stem for word in split_words(text)) for text in (one, other)]
    assert contradicts(stems[0], one, stems[1], other) is expected
    assert contradicts(stems[1], other, stems[0], one) is expected
