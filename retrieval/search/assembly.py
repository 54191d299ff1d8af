"""Build the context of an answer: the passages that a language model gets, from the hits of a search.

Surrounding passages are added within a token budget: adjacent ones, and the rest of tables and short sections.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from retrieval.profile_settings import LARGEST_BLOCKS, LARGEST_BUDGET_TOKENS
from retrieval.search.trace import Hit
from retrieval.text.block import Block, BlockKind
from retrieval.types import AssembledContext, ContextBlock, Passage

Place = tuple[int, int]
# A stretch has a document id, the ordinal of a passage, and the start and end of the text to load around the passage.
Stretch = tuple[int, int, int, int]
LoadNeighbours = Callable[[Sequence[Stretch], int], Mapping[Place, Passage]]

FARTHEST_PLACES = 20
LARGEST_BLOCK_TOKENS = 1_500
LARGEST_SECTION_TOKENS = 700


def get_passage_place(passage: Passage) -> Place:
    return passage.document_id, passage.ordinal


class _SurroundingPassages:
    def __init__(self, load_neighbours: LoadNeighbours) -> None:
        self._load_neighbours = load_neighbours
        self._known: dict[Place, Passage] = {}

    def load(self, hits: Sequence[Passage], needs: Iterable[_Need], expand: int) -> None:
        self._known.update((get_passage_place(passage), passage) for passage in hits)
        wanted = [*((hit, hit.start, hit.end) for hit in hits if expand), *needs]
        if stretches := [(*get_passage_place(passage), start, end) for passage, start, end in wanted]:
            self._known.update(self._load_neighbours(stretches, expand))

    def get(self, place: Place) -> Passage | None:
        return self._known.get(place)

    def find_other_passages(self, passage: Passage, start: int, end: int) -> list[Passage]:
        """Return the other loaded passages with characters ``start`` to ``end``; none if there are too many."""
        found: list[Passage] = []
        for step in (-1, 1):
            at, distance = passage, 0
            while at.start > start if step < 0 else at.end < end:
                distance += 1
                following = self._known.get((passage.document_id, passage.ordinal + step * distance))
                if following is None or following.end <= start or following.start >= end:
                    break
                if distance == FARTHEST_PLACES:
                    return []
                found.append(following)
                at = following
        return found


def _find_partial_blocks(passage: Passage) -> list[tuple[int, int]]:
    return [
        (block.start, block.end)
        for block in passage.blocks
        if block.kind != BlockKind.RECORDS
        and _is_cut(passage, block.start, block.end)
        and _estimate_tokens(passage, block.start, block.end) <= LARGEST_BLOCK_TOKENS
    ]


def _find_partial_sections(passage: Passage) -> list[tuple[int, int]]:
    sections = {
        (block.start if block.heading_start is None else block.heading_start, block.section_end)
        for block in passage.blocks
        if block.kind != BlockKind.RECORDS
    }
    return [
        (start, end)
        for start, end in sorted(sections)
        if _is_cut(passage, start, end) and _estimate_tokens(passage, start, end) <= LARGEST_SECTION_TOKENS
    ]


def _is_cut(passage: Passage, start: int, end: int) -> bool:
    return start < passage.start or end > passage.end


def _estimate_tokens(passage: Passage, start: int, end: int) -> float:
    return (end - start) * passage.token_count / max(1, len(passage.content))


# For this number of best hits, the whole section is added to the context if it is short.
_WHOLE_SECTIONS = 3


def assemble_context(
    hits: Sequence[Hit],
    load_neighbours: LoadNeighbours,
    *,
    budget_tokens: int,
    expand: int = 1,
    blocks: int = LARGEST_BLOCKS,
) -> AssembledContext:
    """Return blocks of adjacent passages for a language model; no blocks if there are no hits.

    The best hit is always included, and at most ``blocks`` hits that fit in ``budget_tokens``; adjacent hits share a
    block. ``expand`` passages before and after each hit are added. The blocks are in reading order, the document of
    the best hit first. Raises: ValueError if ``budget_tokens`` or ``blocks`` is out of range.
    """
    if not 1 <= budget_tokens <= LARGEST_BUDGET_TOKENS:
        raise ValueError(f"The budget must lie between 1 and {LARGEST_BUDGET_TOKENS} tokens, not {budget_tokens}.")
    if not 1 <= blocks <= LARGEST_BLOCKS:
        raise ValueError(f"The number of blocks must lie between 1 and {LARGEST_BLOCKS}, not {blocks}.")
    first_of: dict[str, Hit] = {}
    for hit in hits:
        first_of.setdefault(hit.passage.content_hash, hit)
    unique = list(first_of.values())
    chosen = _ChosenPassages(budget_tokens, blocks)
    surroundings = _SurroundingPassages(load_neighbours)
    likely = [hit.passage for hit in unique[:blocks]] if expand else []
    needs = [_find_needed_ranges(passage, number < _WHOLE_SECTIONS) for number, passage in enumerate(likely)]
    surroundings.load(likely, [need for found in needs for need in found], expand)
    for number, hit in enumerate(unique):
        chosen.add_hit(hit)
        if number + 1 == min(len(unique), _WHOLE_SECTIONS):
            # The rest of the best hits' blocks may use half of the budget, so that other hits fit too.
            for found in needs[:_WHOLE_SECTIONS]:
                chosen.add_rest_of_blocks(found, surroundings, budget_tokens // 2)
    for found in needs:
        chosen.add_rest_of_blocks(found, surroundings, budget_tokens)
    for passage in likely:
        chosen.add_neighbours(passage, surroundings, expand)
    chosen.complete_blocks_of_neighbours(surroundings)
    ordered = _order_blocks(
        [_build_context_block(run, chosen.score_of) for run in _group_adjacent_passages(chosen.passages.values())]
    )
    characters = sum(len(passage.content) for passage in chosen.passages.values())
    return AssembledContext(
        blocks=tuple(ordered),
        statistics={
            "hits": len(hits),
            "repeats_dropped": len(hits) - len(unique),
            "over_budget_dropped": len(unique) - len(chosen.score_of),
            "neighbours_added": len(chosen.passages) - len(chosen.score_of),
            "passages": len(chosen.passages),
            "blocks": len(ordered),
            "documents": len({block.best.document_id for block in ordered}),
            "overlap_characters_stripped": max(0, characters - sum(len(block.content) for block in ordered)),
            "tokens": sum(block.tokens for block in ordered),
            "budget_tokens": budget_tokens,
        },
    )


def build_unranked_blocks(passages: Iterable[Passage]) -> list[ContextBlock]:
    """Join adjacent passages to blocks, in reading order. Every block has the score 0."""
    runs = _group_adjacent_passages(passages)
    return [_build_context_block(run, {get_passage_place(passage): 0.0 for passage in run}) for run in runs]


FOLLOWING_CHARACTERS = 900


def build_result_blocks(hits: Sequence[Hit], context: AssembledContext) -> tuple[ContextBlock, ...]:
    """Return one block for each hit in the context, best first. Hits with equal content share one block."""
    run_of = {get_passage_place(passage): block.passages for block in context.blocks for passage in block.passages}
    found: dict[str, ContextBlock] = {}
    for hit in hits:
        passage = hit.passage
        run = run_of.get(get_passage_place(passage))
        if run is not None and passage.content_hash not in found:
            needs = _find_needed_ranges(passage, whole_sections=True)
            start = min([passage.start, *(start for _passage, start, _end in needs)])
            end = max([passage.end + FOLLOWING_CHARACTERS, *(end for _passage, _start, end in needs)])
            around = [each for each in run if each.end > start and each.start < end]
            found[passage.content_hash] = _build_context_block(around, {get_passage_place(passage): hit.score})
    return tuple(found.values())


_Need = tuple[Passage, int, int]


def _find_needed_ranges(passage: Passage, whole_sections: bool) -> list[_Need]:
    ranges = _find_partial_blocks(passage)
    if whole_sections:
        ranges += _find_partial_sections(passage)
    return [(passage, start, end) for start, end in ranges]


class _ChosenPassages:
    def __init__(self, budget_tokens: int, blocks: int) -> None:
        self.passages: dict[Place, Passage] = {}
        self.score_of: dict[Place, float] = {}
        self._budget_tokens = budget_tokens
        self._blocks = blocks
        self._tokens = 0

    def add_hit(self, hit: Hit) -> None:
        place = get_passage_place(hit.passage)
        if len(self.score_of) < self._blocks and (
            not self.passages or place in self.passages or self._add([hit.passage], self._budget_tokens)
        ):
            if not self.passages:
                self.passages[place] = hit.passage
                self._tokens += hit.passage.token_count
            self.score_of[place] = hit.score

    def add_rest_of_blocks(
        self, needs: Sequence[_Need], surroundings: _SurroundingPassages, budget_tokens: int
    ) -> None:
        for passage, start, end in needs:
            if get_passage_place(passage) in self.score_of:
                self._add(surroundings.find_other_passages(passage, start, end), budget_tokens)

    def add_neighbours(self, passage: Passage, surroundings: _SurroundingPassages, expand: int) -> None:
        document, ordinal = get_passage_place(passage)
        if (document, ordinal) not in self.score_of:
            return
        sides = {-1: True, 1: True}
        for distance in range(1, expand + 1):
            for side, is_open in sides.items():
                place = document, ordinal + side * distance
                neighbour = surroundings.get(place) if is_open else None
                is_added = neighbour is not None and self._add([neighbour], self._budget_tokens)
                sides[side] = place in self.passages or is_added

    def complete_blocks_of_neighbours(self, surroundings: _SurroundingPassages) -> None:
        """Complete tables and other blocks that a passage next to a hit contains only in part."""
        neighbours = [passage for place, passage in self.passages.items() if place not in self.score_of]
        needs = [need for passage in neighbours for need in _find_needed_ranges(passage, whole_sections=False)]
        if needs:
            surroundings.load([], needs, 0)
            for passage, start, end in needs:
                self._add(surroundings.find_other_passages(passage, start, end), self._budget_tokens)

    def _add(self, passages: Sequence[Passage], budget_tokens: int) -> bool:
        new = {
            get_passage_place(passage): passage
            for passage in passages
            if get_passage_place(passage) not in self.passages
        }
        tokens = sum(passage.token_count for passage in new.values())
        if self._tokens + tokens > budget_tokens:
            return False
        self.passages.update(new)
        self._tokens += tokens
        return True


def _group_adjacent_passages(passages: Iterable[Passage]) -> list[list[Passage]]:
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


def _build_context_block(run: Sequence[Passage], score_of: Mapping[Place, float]) -> ContextBlock:
    start, end = run[0].start, run[0].end
    content = run[0].content
    tokens = float(run[0].token_count)
    for passage in run[1:]:
        if passage.end <= end:
            continue
        # Only white space can be between two passages.
        gap = "\n" * max(0, passage.start - end)
        fresh = passage.content[max(0, end - passage.start) :]
        content += gap + fresh
        tokens += passage.token_count * len(fresh) / max(1, len(passage.content))
        end = passage.end
    hits = [passage for passage in run if get_passage_place(passage) in score_of]
    best = max(hits, key=lambda passage: (score_of[get_passage_place(passage)], -passage.ordinal))
    return ContextBlock(
        best=best,
        passages=tuple(run),
        content=content,
        start=start,
        end=end,
        score=score_of[get_passage_place(best)],
        tokens=round(tokens),
        blocks=_merge_blocks(passage.blocks for passage in run),
    )


def _merge_blocks(of_passages: Iterable[tuple[Block, ...]]) -> tuple[Block, ...]:
    return tuple(sorted({each for found in of_passages for each in found}, key=lambda each: each.start))


def _order_blocks(blocks: Sequence[ContextBlock]) -> list[ContextBlock]:
    best_of: dict[int, float] = {}
    for block in blocks:
        best_of[block.best.document_id] = max(best_of.get(block.best.document_id, block.score), block.score)
    return sorted(
        blocks, key=lambda block: (-best_of[block.best.document_id], block.best.document_id, -block.score, block.start)
    )
