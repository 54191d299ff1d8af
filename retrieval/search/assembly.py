"""The context of an answer, from the hits of a search.

Hits that repeat another one word for word are dropped; each of the others is joined by its neighbours where the budget
allows; passages that touch or overlap become one block, its overlap stripped by offsets; blocks of one document stand
together, and documents and blocks are ordered by their best hit. What does not fit the budget is left out from the
bottom of the ranking.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from retrieval.ranking.profile import LARGEST_BLOCKS, LARGEST_BUDGET_TOKENS
from retrieval.search.trace import Hit
from retrieval.types import AssembledContext, ContextBlock, Passage

Place = tuple[int, int]
LoadNeighbours = Callable[[Iterable[Place]], Mapping[Place, Passage]]


def assemble(
    hits: Sequence[Hit],
    load_neighbours: LoadNeighbours,
    *,
    budget_tokens: int,
    expand: int = 1,
    blocks: int = LARGEST_BLOCKS,
) -> AssembledContext:
    """At most ``blocks`` blocks of at most ``budget_tokens`` together; empty for no hits.

    ``load_neighbours`` is asked once, for the passages up to ``expand`` places from a hit. The best hit is kept even if
    it alone exceeds the budget. Raises: ValueError for a budget outside 1 to LARGEST_BUDGET_TOKENS, or for blocks
    outside 1 to LARGEST_BLOCKS.
    """
    if not 1 <= budget_tokens <= LARGEST_BUDGET_TOKENS:
        raise ValueError(f"The budget must lie between 1 and {LARGEST_BUDGET_TOKENS} tokens, not {budget_tokens}.")
    if not 1 <= blocks <= LARGEST_BLOCKS:
        raise ValueError(f"The number of blocks must lie between 1 and {LARGEST_BLOCKS}, not {blocks}.")
    unique = _without_repeats(hits)
    chosen: dict[Place, Passage] = {}
    score_of: dict[Place, float] = {}
    tokens = 0
    dropped = 0
    for hit in unique:
        passage = hit.passage
        if len(score_of) >= blocks or (chosen and tokens + passage.token_count > budget_tokens):
            dropped += 1
            continue
        chosen[_place(passage)] = passage
        score_of[_place(passage)] = hit.score
        tokens += passage.token_count
    wanted = [
        (document, ordinal + step)
        for document, ordinal in score_of
        for distance in range(1, expand + 1)
        for step in (-distance, distance)
        if ordinal + step >= 0
    ]
    neighbours = load_neighbours(place for place in wanted if place not in chosen) if wanted else {}
    expanded = 0
    for place in wanted:
        neighbour = neighbours.get(place)
        if neighbour is None or place in chosen or tokens + neighbour.token_count > budget_tokens:
            continue
        chosen[place] = neighbour
        tokens += neighbour.token_count
        expanded += 1
    ordered = _ordered([_block(run, score_of) for run in _runs(chosen.values())])
    characters = sum(len(passage.content) for passage in chosen.values())
    return AssembledContext(
        blocks=tuple(ordered),
        statistics={
            "hits": len(hits),
            "repeats_dropped": len(hits) - len(unique),
            "over_budget_dropped": dropped,
            "neighbours_added": expanded,
            "passages": len(chosen),
            "blocks": len(ordered),
            "documents": len({block.best.document_id for block in ordered}),
            "overlap_characters_stripped": max(0, characters - sum(len(block.content) for block in ordered)),
            "tokens": sum(block.tokens for block in ordered),
            "budget_tokens": budget_tokens,
        },
    )


def _place(passage: Passage) -> Place:
    return passage.document_id, passage.ordinal


def _without_repeats(hits: Sequence[Hit]) -> list[Hit]:
    """The hits in their order, without those whose words and headings a better one has already."""
    seen: set[str] = set()
    unique = []
    for hit in hits:
        if hit.passage.content_hash not in seen:
            seen.add(hit.passage.content_hash)
            unique.append(hit)
    return unique


def _runs(passages: Iterable[Passage]) -> list[list[Passage]]:
    """Passages grouped into stretches of one document without a gap, each in reading order."""
    by_document: dict[int, list[Passage]] = defaultdict(list)
    for passage in passages:
        by_document[passage.document_id].append(passage)
    runs = []
    for document in by_document.values():
        document.sort(key=lambda passage: passage.ordinal)
        run = [document[0]]
        for passage in document[1:]:
            if passage.ordinal == run[-1].ordinal + 1 or passage.start <= run[-1].end:
                run.append(passage)
            else:
                runs.append(run)
                run = [passage]
        runs.append(run)
    return runs


def _block(run: Sequence[Passage], score_of: Mapping[Place, float]) -> ContextBlock:
    start, end = run[0].start, run[0].end
    content = run[0].content
    tokens = float(run[0].token_count)
    for passage in run[1:]:
        if passage.end <= end:
            continue
        # Between two passages without overlap stands white space only: every other character is in some passage.
        gap = "\n" * max(0, passage.start - end)
        fresh = passage.content[max(0, end - passage.start) :]
        content += gap + fresh
        tokens += passage.token_count * len(fresh) / max(1, len(passage.content))
        end = passage.end
    hits = [passage for passage in run if _place(passage) in score_of]
    best = max(hits, key=lambda passage: (score_of[_place(passage)], -passage.ordinal))
    return ContextBlock(
        best=best,
        passages=tuple(run),
        content=content,
        start=start,
        end=end,
        score=score_of[_place(best)],
        tokens=round(tokens),
    )


def _ordered(blocks: Sequence[ContextBlock]) -> list[ContextBlock]:
    """Documents by their best block, and a document's blocks by their own best hit."""
    best_of: dict[int, float] = {}
    for block in blocks:
        best_of[block.best.document_id] = max(best_of.get(block.best.document_id, block.score), block.score)
    return sorted(
        blocks, key=lambda block: (-best_of[block.best.document_id], block.best.document_id, -block.score, block.start)
    )
