"""Units compared with a question by the tokens of the passages that they stand in."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from chat.grounding.evidence.closeness import SourceTokens

from chat.grounding.units import quotable_units
from chat.types import ContextSource
from retrieval.dense.token_vectors import PassageTokens, TokenEncoding, Tokens, packed
from tests.unit.chat.grounding.test_evidence import source

WIDTH = 64


def vector_of(word: str) -> np.typing.NDArray[np.float32]:
    """Signs drawn by the word's letters: two words have next to nothing in common."""
    signs = np.random.default_rng(list(word.encode())).choice([-1.0, 1.0], WIDTH).astype(np.float32)
    return signs / np.sqrt(WIDTH, dtype=np.float32)


def encoding_of(text: str) -> TokenEncoding:
    words = list(re.finditer(r"\w+", text.lower()))
    vectors = np.array([vector_of(word.group()) for word in words], np.float32).reshape(-1, WIDTH)
    mean = vectors.sum(axis=0)
    tokens = Tokens(tuple(word.group() for word in words), tuple(word.span() for word in words))
    return TokenEncoding(mean / max(1e-6, float(np.linalg.norm(mean))), tokens, vectors)


def tokens_of(passage_text: str, above: str = "") -> PassageTokens:
    text = f"{above}\n{passage_text}" if above else passage_text
    encoding = encoding_of(text)
    spans = [span for span, tells in zip(encoding.tokens.spans, encoding.tokens.telling(), strict=True) if tells]
    signs = np.frombuffer(packed(encoding), np.uint8).reshape(-1, WIDTH // 8)
    return PassageTokens(text, len(text) - len(passage_text), [at for at, _ in spans], [to for _, to in spans], signs)


def two_passages() -> ContextSource:
    """The second sentence is cut: its end stands in the second passage."""
    whole = source("Pumps need water. Valves close slowly at night. Pipes leak.")
    first = replace(whole.block.best, content="Pumps need water. Valves close", end=130)
    second = replace(whole.block.best, chunk_id=2, ordinal=1, content="slowly at night. Pipes leak.", start=131)
    return replace(whole, block=replace(whole.block, best=first, passages=(first, second)))


@pytest.mark.parametrize(
    ("word", "nearest"), [("water", 0), ("valves", 1), ("night", 1), ("leak", 2)], ids=lambda value: str(value)
)
def test_a_unit_is_near_by_the_words_between_its_ends(word: str, nearest: int) -> None:
    cut = two_passages()
    known = SourceTokens(
        [cut], {1: tokens_of("Pumps need water. Valves close"), 2: tokens_of("slowly at night. Pipes leak.")}
    )
    closeness = known.compare(encoding_of(word), quotable_units([cut]))
    assert list(closeness.pieces) == [word]
    assert closeness.nearest[0].argmax() == closeness.similarities.argmax() == nearest
    assert closeness.nearest[0, nearest] == 1.0
    # Of signs, a vector is as near to its own as to be scaled beyond 1; all others lie far below.
    assert np.delete(closeness.nearest[0], nearest).max() < 0.6


def test_what_stands_above_a_passage_counts_for_the_units_below_it() -> None:
    below = source("It is closed.", headings=("Canteen",))
    known = SourceTokens([below], {1: tokens_of("It is closed.", "Manual > Canteen")})
    (unit,) = quotable_units([below])
    assert unit.heading == "Manual"
    nearest = known.compare(encoding_of("manual canteen"), [unit]).nearest
    assert nearest[0, 0] == 1.0
    assert nearest[1, 0] < 0.6


def test_a_unit_without_a_telling_word_is_far_from_everything() -> None:
    silent = source("It is so.")
    closeness = SourceTokens([silent], {1: tokens_of("It is so.")}).compare(
        encoding_of("pump"), quotable_units([silent])
    )
    assert closeness.nearest.tolist() == [[0.0]]
    assert closeness.similarities.tolist() == [0.0]


def test_vectors_of_a_place_are_unit_vectors() -> None:
    cut = two_passages()
    known = SourceTokens(
        [cut], {1: tokens_of("Pumps need water. Valves close"), 2: tokens_of("slowly at night. Pipes leak.")}
    )
    vectors = known.vectors_within(cut, 100, 117)
    assert vectors.shape == (3, WIDTH)
    assert vectors @ vector_of("water") == pytest.approx([*(vectors[:2] @ vector_of("water")), 1.0])
