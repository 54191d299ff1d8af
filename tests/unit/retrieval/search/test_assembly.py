from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.profile_settings import LARGEST_BLOCKS
from retrieval.search.assembly import FARTHEST_PLACES, LARGEST_BLOCK_TOKENS, assemble_context
from retrieval.search.trace import Hit
from retrieval.text.block import Block, BlockKind
from retrieval.types import Candidate, Passage

TEXT = "".join(f"Sentence number {n} says what it says. " for n in range(400))
SIZE = 200
STEP = 160


def passage(document, ordinal, *, tokens=50, content_hash=""):
    """Return a passage of SIZE characters that overlaps the next one by SIZE - STEP."""
    start = ordinal * STEP
    return Passage(
        chunk_id=document * 1000 + ordinal, document_id=document, document_title=f"Document {document}",
        document_url="", source=f"{document}.txt", collection="library", ordinal=ordinal, start=start,
        end=start + SIZE, page=None, heading_path=(), content=TEXT[start : start + SIZE],
        content_hash=content_hash or f"{document}-{ordinal}", token_count=tokens,
    )  # fmt: skip


BLOCK = Block(7 * STEP + 20, 10 * STEP + 90, BlockKind.STEPS, 7 * STEP, 10 * STEP + 300)


def with_blocks(document, ordinal, *blocks, tokens=50):
    """Return the passage, with the blocks that it contains a part of."""
    bare = passage(document, ordinal, tokens=tokens)
    return replace(bare, blocks=tuple(each for each in blocks if each.start < bare.end and each.end > bare.start))


def neighbours_with(*blocks, asked=None, tokens=50):
    """Return the 41 passages of each document, as the database gives them."""

    def load(stretches, expand):
        if asked is not None:
            asked.append(stretches)
        return {
            (document, number): found
            for document, ordinal, start, end in stretches
            for number in range(max(0, ordinal - FARTHEST_PLACES), min(41, ordinal + FARTHEST_PLACES + 1))
            for found in [with_blocks(document, number, *blocks, tokens=tokens)]
            if number != ordinal and (abs(number - ordinal) <= expand or (found.start < end and found.end > start))
        }

    return load


def hits(*passages):
    return [Hit(rank, found, Candidate(found.chunk_id, 1.0 / rank)) for rank, found in enumerate(passages, start=1)]


def none(_stretches, _expand):
    return {}


def test_neighbours_join_their_hit_and_the_overlap_is_stripped():
    context = assemble_context(hits(passage(1, 5)), neighbours_with(), budget_tokens=4000)
    (block,) = context.blocks
    assert (block.start, block.end) == (4 * STEP, 6 * STEP + SIZE)
    assert block.content == TEXT[block.start : block.end]
    assert [found.ordinal for found in block.passages] == [4, 5, 6]
    assert block.best.ordinal == 5
    assert context.statistics["neighbours_added"] == 2
    assert context.statistics["overlap_characters_stripped"] == 2 * (SIZE - STEP)


def test_hits_that_say_the_same_are_given_once():
    context = assemble_context(
        hits(passage(1, 3, content_hash="same"), passage(2, 9, content_hash="same")), none, budget_tokens=4000
    )
    assert [block.best.document_id for block in context.blocks] == [1]
    assert context.statistics["repeats_dropped"] == 1


places = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), unique=True, max_size=12)


def test_no_more_hits_than_blocks_asked_for():
    found = hits(*(passage(document, 0) for document in range(1, 7)))
    context = assemble_context(found, none, budget_tokens=4000, blocks=2)
    assert [block.best.document_id for block in context.blocks] == [1, 2]
    assert context.statistics["over_budget_dropped"] == 4
    for blocks in (0, LARGEST_BLOCKS + 1):
        with pytest.raises(ValueError, match="between 1 and 8"):
            assemble_context(found, none, budget_tokens=4000, blocks=blocks)


def test_a_procedure_that_is_cut_comes_whole():
    asked = []
    context = assemble_context(hits(with_blocks(1, 7, BLOCK)), neighbours_with(BLOCK, asked=asked), budget_tokens=4000)
    (block,) = context.blocks
    assert block.start <= BLOCK.start < BLOCK.end <= block.end
    assert (block.content, block.blocks) == (TEXT[block.start : block.end], (BLOCK,))
    assert context.statistics["neighbours_added"] == len(block.passages) - 1
    assert len(asked) <= 2


def test_what_belongs_to_the_best_hits_comes_before_other_neighbours_with():
    # Three passages more contain the procedure; for the neighbours of the second hit, and those around, no room is
    # left.
    found = hits(with_blocks(1, 7, BLOCK), passage(2, 7))
    context = assemble_context(found, neighbours_with(BLOCK), budget_tokens=500)
    assert next(block for block in context.blocks if block.best.document_id == 1).end >= BLOCK.end
    tight = assemble_context(found, neighbours_with(BLOCK), budget_tokens=150)
    assert {block.best.document_id for block in tight.blocks} == {1, 2}
    # A block that does not fit whole is not begun.
    assert tight.statistics["neighbours_added"] == 1


def test_a_block_longer_than_can_be_shown_is_not_completed():
    tokens = LARGEST_BLOCK_TOKENS // 2
    found = hits(with_blocks(1, 7, BLOCK, tokens=tokens))
    context = assemble_context(found, neighbours_with(BLOCK, tokens=tokens), budget_tokens=8000, expand=1)
    assert [each.ordinal for each in context.blocks[0].passages] == [6, 7, 8]


def test_the_block_of_a_neighbour_is_not_left_cut():
    after = next(number for number in range(40) if passage(1, number).start >= BLOCK.end)
    context = assemble_context(hits(with_blocks(1, after, BLOCK)), neighbours_with(BLOCK), budget_tokens=8000, expand=1)
    (block,) = context.blocks
    assert block.start <= BLOCK.start


def test_short_sections_of_the_best_hits_come_whole():
    paragraph = Block(20 * STEP + 10, 20 * STEP + 90, BlockKind.PARAGRAPH, 17 * STEP + 60, 23 * STEP)
    found = hits(*(with_blocks(document, 20, paragraph) for document in range(1, 5)))
    context = assemble_context(found, neighbours_with(paragraph), budget_tokens=4000)
    starts = {block.best.document_id: block.start for block in context.blocks}
    assert [starts[document] <= 17 * STEP + 60 for document in range(1, 5)] == [True, True, True, False]


block_ranges = st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 1500)), max_size=8)


@given(places, st.integers(50, 4000), st.integers(0, 3), block_ranges)
def test_context_keeps_its_promises(found, budget, expand, ranges):
    blocks = [
        Block(start, start + length, BlockKind.LIST, max(0, start - 100), start + length + 300)
        for start, length in ranges
    ]
    asked = []
    context = assemble_context(
        hits(*(with_blocks(*place, *blocks) for place in found)),
        neighbours_with(*blocks, asked=asked),
        budget_tokens=budget,
        expand=expand,
    )
    assert len(asked) <= 2
    assert len(context.blocks) <= LARGEST_BLOCKS
    assert sum(block.tokens for block in context.blocks) <= max(budget, 50)
    covered = {}
    for block in context.blocks:
        assert block.content == TEXT[block.start : block.end]
        offsets = set(range(block.start, block.end))
        assert not offsets & covered.setdefault(block.best.document_id, set())
        covered[block.best.document_id] |= offsets
        assert all(each.start < block.end and each.end > block.start for each in block.blocks)
        assert [each.start for each in block.blocks] == sorted(each.start for each in block.blocks)
    counted = context.statistics
    assert counted["passages"] == sum(len(block.passages) for block in context.blocks)
    assert counted["neighbours_added"] + counted["hits"] >= counted["passages"]
    if found:
        assert context.blocks[0].best.document_id == found[0][0]
