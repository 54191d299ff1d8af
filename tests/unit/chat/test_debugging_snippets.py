"""The words of a passage around what was found in it, and the rows of candidates."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chat.debugging.candidates import FRAGMENT_CHARACTERS, Shown, SnippetPart, candidate_rows, snippet
from chat.types import KnownPassage
from retrieval.types import SILENT, Candidate, Retriever, RetrieverScore
from tests.support.traces import example_trace

FILLER = "Some words that stand between the interesting ones and say nothing at all. " * 6


def spans_of(text: str, *words: str) -> list[tuple[int, int]]:
    return [
        (at, at + len(word)) for word in words for at in range(len(text)) if text.startswith(word, at)
    ]  # every place


def said(pieces: tuple[SnippetPart, ...]) -> str:
    return "".join(piece.text for piece in pieces)


def test_the_preview_shows_the_text_around_the_first_match() -> None:
    text = f"{FILLER}The seal kit fits the pump. {FILLER}"
    pieces = snippet(text, spans_of(text, "seal"))
    assert [piece.text for piece in pieces if piece.marked] == ["seal"]
    assert said(pieces).startswith("… ")
    assert said(pieces).endswith(" …")
    assert "The seal kit fits the pump." in said(pieces)


def test_without_a_match_the_beginning_is_shown() -> None:
    assert said(snippet("A short text.")) == "A short text."
    assert said(snippet(FILLER)).startswith("Some words")
    assert len(said(snippet(FILLER))) <= FRAGMENT_CHARACTERS + 2
    assert snippet("") == ()


@given(st.text(alphabet="ab \n<é", max_size=900), st.lists(st.tuples(st.integers(-5, 950), st.integers(-5, 950))))
def test_marked_pieces_are_places_of_the_text(text: str, spans: list[tuple[int, int]]) -> None:
    pieces = snippet(text, spans)
    flat = " ".join(text.split())
    for piece in pieces:
        if piece.marked:
            assert " ".join(piece.text.split()) in flat
    assert len(said(pieces)) <= FRAGMENT_CHARACTERS + 4


def candidate(chunk_id: int, rank: int | None, score: float, **more: Any) -> Candidate:
    scores = {Retriever.LEXICAL: SILENT, Retriever.VECTOR: RetrieverScore(1, 1.0, 1.0, 0.5, score)}
    return Candidate(chunk_id, score, scores, rank=rank, dropped="" if rank else "not among the first 1", **more)


def test_those_kept_come_first_and_what_is_gone_shows_what_was_saved() -> None:
    trace = example_trace(
        candidates=(candidate(3, None, 0.2), candidate(2, None, 0.4), candidate(1, 1, 0.9)),
        passages=dict.fromkeys([1, 2, 3], KnownPassage("Title", "Section", "As it was saved.")),
    )
    rows = candidate_rows(trace, {1: Shown((SnippetPart("As it is now."),), "/documents/1/")})
    assert [row.candidate.rank for row in rows] == [1, None, None]
    assert [row.candidate.score for row in rows] == [0.9, 0.4, 0.2]
    assert rows[0].shown.href == "/documents/1/"
    assert said(rows[1].shown.pieces) == "As it was saved."
    assert rows[0].lexical.score.rank is None
    assert (rows[0].vector.start, rows[0].vector.width) == (50.0, 50.0)
