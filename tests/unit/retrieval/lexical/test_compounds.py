"""Compounds: what counts as a part of one, and how one is split."""

from __future__ import annotations

import itertools
import math
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrieval.text.compounds import (
    DUTCH,
    GERMAN,
    LONGEST_COMPOUND,
    SHORTEST_PART,
    SHORTEST_REST,
    has_part,
    pieces_of,
    rests_of,
    split,
)

words = st.text("abeknrst", min_size=SHORTEST_PART, max_size=7)


def split_known(word: str, frequencies: dict[str, int]) -> tuple[str, ...]:
    """The split where every piece comes down to itself."""
    return split(word, {piece: piece for piece in pieces_of(word, DUTCH)}, frequencies, DUTCH)


@pytest.mark.parametrize(
    ("compound", "part"),
    [
        ("polikliniekbezoek", "bezoek"),
        ("bezoektijd", "bezoek"),
        ("bezoekur", "bezoek"),
        ("verzekeringspas", "verzeker"),
        ("gebedsruimt", "gebed"),
        ("stiltecentrum", "stilt"),
    ],
)
def test_a_compound_has_the_words_that_it_begins_and_ends_with(compound: str, part: str) -> None:
    assert has_part(compound, part, DUTCH)


@pytest.mark.parametrize(
    ("compound", "part"),
    [
        ("bezoek", "bezoek"),
        ("bezoeker", "bezoek"),  # a form, not a compound
        ("overnacht", "nacht"),
        ("alcoholist", "alcohol"),
        ("burgerlijk", "burger"),
        ("therapiehond", "hon"),  # too short to tell
        ("gezondheidscentrum", "heid"),  # inside, not at an end
        ("bezoek2025", "bezoek"),
        ("part9920", "part"),
    ],
)
def test_what_a_word_has_beside_its_parts_makes_no_compound(compound: str, part: str) -> None:
    assert not has_part(compound, part, DUTCH)


def test_languages_have_affixes_of_their_own() -> None:
    assert not has_part("freundlich", "freund", GERMAN)
    assert has_part("besuchszeit", "besuch", GERMAN)


def test_a_short_part_among_many_words_asks_for_a_known_rest() -> None:
    assert has_part("weekkaart", "week", DUTCH)
    assert not has_part("weekkaart", "week", DUTCH, known=set())
    assert has_part("weekkaart", "week", DUTCH, known={"kaart"})
    assert has_part("kaartenbak", "kaart", DUTCH, known=set())
    # The link belongs to neither part.
    assert has_part("dorpshuis", "dorp", DUTCH, known={"huis"})
    assert has_part("dorpshuis", "huis", DUTCH, known={"dorp"})


def test_a_compound_is_split_where_its_parts_are_frequent() -> None:
    frequencies = {"bezoek": 10, "regels": 4, "bezoe": 1, "kregels": 1}
    assert split_known("bezoekregels", frequencies) == ("bezoek", "regels")
    assert split_known("bezoekregels", {"bezoek": 10}) == ()
    assert split_known("bezoek", {"bezoek": 10}) == ()


def test_linking_letters_belong_to_no_part() -> None:
    assert split_known("verzekeringspas", {"verzekering": 3, "pas": 9}) == ()  # "pas" is too short
    assert split_known("afdelingskoelkast", {"afdeling": 3, "koelkast": 1}) == ("afdeling", "koelkast")
    assert split_known("gastennetwerk", {"gast": 3, "netwerk": 1}) == ("gast", "netwerk")


def test_parts_are_told_by_what_they_come_down_to() -> None:
    lexemes = {piece: piece.replace("oo", "o") for piece in pieces_of("schoolboek", DUTCH)}
    assert split("schoolboek", lexemes, {"schol": 2, "boek": 2}, DUTCH) == ("school", "boek")


@given(words, words, st.sampled_from(["", *DUTCH.links]))
def test_both_parts_of_a_made_compound_are_found(modifier: str, head: str, link: str) -> None:
    compound = modifier + link + head
    found = split_known(compound, {modifier: 5, head: 5})
    assert set(found) <= {modifier, head}
    assert found
    if not compound.startswith(head):
        assert has_part(compound, head, DUTCH, known={modifier}) or modifier + link in DUTCH.prefixes


@given(st.text("abcdens", min_size=1, max_size=16), st.text("abcdens", min_size=1, max_size=16))
def test_a_part_stands_at_an_end_and_leaves_a_word(compound: str, part: str) -> None:
    if has_part(compound, part, DUTCH):
        assert compound.startswith(part) or compound.endswith(part)
        assert len(compound) > len(part) >= SHORTEST_PART
        assert not has_part(part, compound, DUTCH)
        # To know more words can only find more compounds.
    if has_part(compound, part, DUTCH, known=set()):
        assert has_part(compound, part, DUTCH, known={"anders"})
        assert has_part(compound, part, DUTCH)


@given(st.text("abensk", min_size=8, max_size=14), st.data())
def test_a_split_covers_the_word_and_no_other_has_more_frequent_parts(word: str, data: st.DataObject) -> None:
    pieces = sorted(set(pieces_of(word, DUTCH)))
    assume(pieces)
    known = data.draw(st.dictionaries(st.sampled_from(pieces), st.integers(1, 50), max_size=12))
    found = split_known(word, known)
    if not found:
        return
    assert len(found) >= 2
    assert all(known[piece] > 0 and len(piece) >= SHORTEST_PART for piece in found)
    # What is not in a part is a link behind one.
    gaps = {"", *DUTCH.links}
    assert any(
        "".join(itertools.chain(*zip(found, (*links, ""), strict=True))) == word
        for links in itertools.product(gaps, repeat=len(found) - 1)
    )
    mean = math.prod(known[piece] for piece in found) ** (1 / len(found))
    for cut in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
        if word[:cut] in known and word[cut:] in known:
            assert mean >= math.sqrt(known[word[:cut]] * known[word[cut:]]) - 1e-6


@given(words, words)
def test_what_is_left_of_a_compound_is_long_enough(part: str, rest: str) -> None:
    rests = rests_of(part + rest, part, DUTCH)
    assert rest in rests
    assert all(len(each) >= SHORTEST_REST and rest.endswith(each) for each in rests)


def test_a_word_of_a_thousand_letters_is_left_alone() -> None:
    assert list(pieces_of("abcd" * 250, DUTCH)) == []
    assert split_known("abcd" * 250, {"abcd": 1}) == ()


def test_a_word_of_one_letter_is_split_without_trying_every_way() -> None:
    """Half a million ways; whoever writes documents decides which parts are known."""
    started = time.process_time()
    for _ in range(10):
        assert split_known("a" * LONGEST_COMPOUND, {"a" * length: 1 for length in range(1, LONGEST_COMPOUND)})
    assert time.process_time() - started < 2
