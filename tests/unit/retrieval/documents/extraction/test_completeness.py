"""The words that a file has and its extracted text lacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.documents.extraction.completeness import find_lost_words

_WORDS = st.lists(st.text("abcdeñéßŞ019", min_size=1, max_size=8), max_size=40)


@pytest.mark.parametrize(
    ("expected", "text", "lost"),
    [
        ("", "", []),
        ("", "more", []),
        ("Order 47-K for Vermeulen", "Order for", ["47", "K", "Vermeulen"]),
        ("the cat and the dog", "the cat and dog", ["the"]),
        ("ten ten ten", "ten", ["ten", "ten"]),
        # The order of columns and tables is another.
        ("one two three four", "| three | four |\n| --- | --- |\n| one | two |", []),
        # Hyphens, at line ends too, ligatures, case, marks of order.
        ("state-of-the-\nart oﬃce exam\u00adple E\u2011MAIL", "state-of-the-art office example e-mail", []),
        ("zee-\neend", "zee-eend", []),
        ("exam\ufffeple", "example", []),
        ("school\ufffePage 4", "Page 4 school-", []),
        ("\u202bשלום\u202c", "שלום", []),
        # Words that are written together or apart.
        ("h a r b o u r office", "harbour office", []),
        ("harbour office", "h a r b o u r office", []),
        ("Total 320 euro", "Total320 euro", []),
        ("Total320 euro", "| Total | 320 euro |", []),
        ("H 2 O and H2O", "H2O and H2O", []),
        ("5 x 106", "5 x 10^6", []),
        ("a way a lone", "away a lone", []),
        # A short word within a long one is no reason to miss the long one.
        ("e thee", "ethee", []),
        ("the price of art", "the party of price", []),
        ("the art of art", "the art of", ["art"]),
        ("倉庫の在庫 12", "在庫 12 倉庫の", []),
        ("倉庫の在庫", "倉庫", ["の", "在", "庫"]),
        ("Straße", "STRASSE", []),
    ],
)
def test_names_the_words_that_the_text_lacks(expected: str, text: str, lost: list[str]) -> None:
    assert find_lost_words(expected, text) == lost


@given(_WORDS, st.randoms())
def test_no_order_and_no_spaces_lose_a_word(words, random) -> None:
    shuffled = random.sample(words, len(words))

    assert find_lost_words(" ".join(words), " ".join(shuffled)) == []
    assert find_lost_words(" ".join(words), "".join(words)) == []
    assert find_lost_words("".join(words), " ".join(words)) == []


@given(_WORDS, st.sampled_from(["quokka", "777"]), st.integers(0, 40))
def test_a_word_that_is_taken_away_is_lost(words, word, at) -> None:
    assert find_lost_words(" ".join([*words[:at], word, *words[at:]]), " ".join(words)) == [word]


def test_words_of_a_large_text_without_spaces_are_found() -> None:
    words = [f"w{number}" for number in range(4_000)]

    assert find_lost_words(" ".join([*words, "quokka"]), "".join(words)) == ["quokka"]
