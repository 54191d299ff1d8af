from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.assembly import LARGEST_BLOCKS, Place, assemble
from retrieval.search.trace import Hit
from retrieval.types import Candidate, Passage

TEXT = "".join(f"Sentence number {n} says what it says. " for n in range(400))
SIZE = 200
STEP = 160


def passage(document: int, ordinal: int, *, tokens: int = 50, content_hash: str = "") -> Passage:
    """A passage of SIZE characters that overlaps the next one by SIZE - STEP."""
    start = ordinal * STEP
    return Passage(
        chunk_id=document * 1000 + ordinal,
        document_id=document,
        document_title=f"Document {document}",
        document_url="",
        source=f"{document}.txt",
        collection="library",
        ordinal=ordinal,
        start=start,
        end=start + SIZE,
        page=None,
        heading_path=(),
        content=TEXT[start : start + SIZE],
        content_hash=content_hash or f"{document}-{ordinal}",
        token_count=tokens,
    )


def hits(*passages: Passage) -> list[Hit]:
    return [Hit(rank, found, Candidate(found.chunk_id, 1.0 / rank)) for rank, found in enumerate(passages, start=1)]


def neighbours(last: int = 40) -> object:
    def load(places: Iterable[Place]) -> Mapping[Place, Passage]:
        return {place: passage(*place) for place in places if place[1] <= last}

    return load


def none(_places: Iterable[Place]) -> Mapping[Place, Passage]:
    return {}


def test_neighbours_join_their_hit_and_the_overlap_is_stripped() -> None:
    context = assemble(hits(passage(1, 5)), neighbours(), budget_tokens=4000)
    (block,) = context.blocks
    assert (block.start, block.end) == (4 * STEP, 6 * STEP + SIZE)
    assert block.content == TEXT[block.start : block.end]
    assert [found.ordinal for found in block.passages] == [4, 5, 6]
    assert block.best.ordinal == 5
    assert context.statistics["neighbours_added"] == 2
    assert context.statistics["overlap_characters_stripped"] == 2 * (SIZE - STEP)


def test_the_first_passage_has_no_neighbour_before_it() -> None:
    (block,) = assemble(hits(passage(1, 0)), neighbours(), budget_tokens=4000).blocks
    assert [found.ordinal for found in block.passages] == [0, 1]


def test_hits_that_say_the_same_are_given_once() -> None:
    context = assemble(
        hits(passage(1, 3, content_hash="same"), passage(2, 9, content_hash="same")), none, budget_tokens=4000
    )
    assert [block.best.document_id for block in context.blocks] == [1]
    assert context.statistics["repeats_dropped"] == 1


def test_adjacent_hits_become_one_block_with_the_better_one_as_its_best() -> None:
    (block,) = assemble(hits(passage(1, 4), passage(1, 3)), none, budget_tokens=4000).blocks
    assert block.best.ordinal == 4
    assert block.score == 1.0


def test_blocks_of_a_document_stand_together_in_order_of_relevance() -> None:
    context = assemble(hits(passage(1, 0), passage(2, 0), passage(1, 20)), none, budget_tokens=4000)
    assert [(block.best.document_id, block.best.ordinal) for block in context.blocks] == [(1, 0), (1, 20), (2, 0)]


def test_the_least_relevant_is_dropped_first() -> None:
    context = assemble(hits(passage(1, 0), passage(2, 0), passage(3, 0)), none, budget_tokens=100)
    assert [block.best.document_id for block in context.blocks] == [1, 2]
    assert context.statistics["over_budget_dropped"] == 1


def test_hits_come_before_neighbours_when_the_budget_is_short() -> None:
    context = assemble(hits(passage(1, 5), passage(2, 5)), neighbours(), budget_tokens=150)
    assert {block.best.document_id for block in context.blocks} == {1, 2}
    assert context.statistics["neighbours_added"] == 1


def test_the_best_hit_stays_even_alone_over_the_budget() -> None:
    assert len(assemble(hits(passage(1, 0, tokens=900)), none, budget_tokens=100).blocks) == 1


def test_no_hits_no_context() -> None:
    assert assemble([], none, budget_tokens=100).blocks == ()


@pytest.mark.parametrize("budget", [0, 8001])
def test_impossible_budgets_are_refused(budget: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 8000"):
        assemble([], none, budget_tokens=budget)


places = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), unique=True, max_size=12)


@given(places, st.integers(50, 1500))
def test_context_keeps_its_promises(found: list[Place], budget: int) -> None:
    context = assemble(hits(*(passage(*place) for place in found)), neighbours(), budget_tokens=budget)
    assert len(context.blocks) <= LARGEST_BLOCKS
    assert sum(block.tokens for block in context.blocks) <= max(budget, 50)
    covered: dict[int, set[int]] = {}
    for block in context.blocks:
        assert block.content == TEXT[block.start : block.end]
        offsets = set(range(block.start, block.end))
        assert not offsets & covered.setdefault(block.best.document_id, set())
        covered[block.best.document_id] |= offsets
    if found:
        assert context.blocks[0].best.document_id == found[0][0]


def test_no_more_hits_than_blocks_asked_for() -> None:
    found = hits(*(passage(document, 0) for document in range(1, 7)))
    context = assemble(found, none, budget_tokens=4000, blocks=2)
    assert [block.best.document_id for block in context.blocks] == [1, 2]
    assert context.statistics["over_budget_dropped"] == 4
    for blocks in (0, LARGEST_BLOCKS + 1):
        with pytest.raises(ValueError, match="between 1 and 8"):
            assemble(found, none, budget_tokens=4000, blocks=blocks)
