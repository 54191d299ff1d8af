import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.terms import (
    DIMENSIONS,
    compute_inverse_document_frequency,
    compute_lexeme_dimension,
    expand_identifiers,
    list_spellings,
    make_document_terms,
)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("MX-9920-W", "mx9920w mx 9920 w"),
        ("E-041", "e041 e 041"),
        ("load_index", "loadindex load index"),
        ("loadIndex", "loadindex load index"),
        ("rclcpp::Node", "rclcppnode rclcpp node"),
        ("a->b", "ab a b"),
        ("2026-11-20", "20261120 2026 11 20"),
        ("U.S.A.", "USA."),
        ("his/her", "his her"),
        ("v2.10.3", "2.10.3"),
        ("V 2.10", "2.10"),
        ("v2.10.3-rc1", "2103rc1 2 10 3rc1 3 rc1"),
        ("1920 × 1080", "1920x1080 1920 1080"),
        ("M8x40", "m8x40 m8 40"),
        ("10mm", "10 mm"),
        ("cafe\u0301", "caf\u00e9"),
        # Word processors write other hyphens. A dash between numbers is a range.
        ("MX\u20119920\u2011W", "mx9920w mx 9920 w"),
        ("MX\u20109920\u2010W", "mx9920w mx 9920 w"),
        ("MX\u20139920\u2013W", "mx9920w mx 9920 w"),
        ("2.5\u20133", "2.5\u20133"),
    ],
)
def test_identifiers_are_spelt_out_whole_and_in_parts(text, expanded):
    assert expand_identifiers(text).strip() == expanded


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("shows 🟢?", "shows symbol1f7e2 ?"),
        ("⚠️ and ⚠", "symbol26a0 and symbol26a0"),
        ("Menu → Save", "Menu symbol2192 Save"),
        ("■ first │ second", "first │ second"),
        ("有給休暇は", "有給 給休 休暇 暇は"),
        ("MX-9920-Wの価格", "mx9920w mx 9920 w の価 価格"),
        ("犬", "犬"),
        ("연차 휴가는", "연차 휴가 가는"),
    ],
)
def test_symbols_become_words_and_languages_without_blanks_pairs(text, terms):
    assert expand_identifiers(text).split() == terms.split()


def test_codes_with_blanks_are_added_to_a_document_as_one_word():
    assert (
        make_document_terms("ISO 9001, MX 9920 W, IN 2024 A")
        == "ISO 9001, MX 9920 W, IN 2024 A\nin2024a\niso9001\nmx9920w"
    )


@pytest.mark.parametrize("text", ["state-of-the-art", "version 2.10.1 of 3.14", "don't", "Dr. Vanderstraeten", "één"])
def test_ordinary_text_stays_as_it_is(text):
    assert expand_identifiers(text) == text


@pytest.mark.parametrize(
    ("phrase", "ways"),
    [
        ("MX-9920-W", ["mx9920w mx 9920 w", "mx9920w", "mx 9920 w"]),
        ("the wet-rotor pump", ["the wet-rotor pump", "the wet rotor pump"]),
        ("call loadIndex first", ["call loadindex load index first", "call loadindex first", "call load index first"]),
        ("plain words", ["plain words"]),
        ("version 2.10.1", ["version 2.10.1"]),
    ],
)
def test_a_phrase_is_spelt_in_each_way_that_documents_have(phrase, ways):
    assert list_spellings(phrase) == ways


@pytest.mark.parametrize("name", ["maxConflicts", "max_conflicts", "MAX_CONFLICTS", "MX-9920-W", "my-file", "load"])
@pytest.mark.parametrize(
    "path", ["folder.{}", "folder.{}.first", "a/b/{}", "Folder::{}", "{}@host", "<{}>10</{}>", "it->{}"]
)
def test_a_name_within_a_path_is_found_as_if_it_were_alone(path, name):
    words = f" {' '.join(expand_identifiers(path.replace('{}', name)).split())} "
    assert f" {expand_identifiers(name)} " in words


@given(st.text(max_size=60))
def test_the_first_spelling_is_the_documents_own(phrase):
    assert list_spellings(phrase)[0].split() == expand_identifiers(phrase).split()


def test_paths_and_tags_do_not_swallow_words():
    words = expand_identifiers("see /etc/ros/foo.yaml and <div class=x>").split()
    assert {"etc", "ros", "foo", "yaml", "etcrosfooyaml", "div", "class", "x"} <= set(words)
    assert not any(character in "".join(words) for character in "/<>=")


def test_names_of_languages_with_signs_are_words():
    assert expand_identifiers("C++ and C# and .NET").split() == ["cplusplus", "and", "csharp", "and", "dotnet"]


@given(st.text(max_size=80))
def test_nothing_is_left_that_postgresql_would_take_for_a_path_or_a_tag(text):
    assert not set(expand_identifiers(text)) & set("/\\_<>&=~|")


@given(st.text(min_size=1, max_size=30))
def test_dimensions_fit(lexeme):
    assert 1 <= compute_lexeme_dimension(lexeme) <= DIMENSIONS


def test_idf_is_positive_and_falls_with_frequency():
    values = [compute_inverse_document_frequency(frequency, 1000) for frequency in range(0, 1001, 50)]
    assert all(value > 0 for value in values)
    assert values == sorted(values, reverse=True)
    assert compute_inverse_document_frequency(1, 10) == pytest.approx(math.log(1 + 9.5 / 1.5))


def test_long_runs_of_letters_take_no_time():
    # A pattern that starts anywhere would take minutes here; the suite's own time limit would report it.
    assert "x" * 100 in expand_identifiers("x" * 200_000 + " " + "A1" * 50_000)
