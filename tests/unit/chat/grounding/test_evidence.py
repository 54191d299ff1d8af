"""Blocks of the context and how they are scored; vectors come from a small embedder of letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from chat.grounding.blocks import BlockKind, quotable_blocks
from chat.grounding.relevance import codes, score_blocks
from chat.grounding.words import stems
from chat.types import Source
from retrieval.types import ContextBlock, Passage


def source(content: str, *, start: int = 100, headings: tuple[str, ...] = (), marker: int = 1) -> Source:
    passage = Passage(
        chunk_id=marker,
        document_id=1,
        document_title="Manual",
        document_url="",
        source="manual.md",
        collection="library",
        ordinal=0,
        start=start,
        end=start + len(content),
        page=None,
        heading_path=headings,
        content=content,
        content_hash="",
        token_count=10,
    )
    return Source(marker, ContextBlock(passage, (passage,), content, start, start + len(content), 1.0, 10))


def letters(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Unit vectors of letter counts."""
    counts = np.array([[text.lower().count(chr(97 + n)) + 0.01 for n in range(26)] for text in texts], dtype=np.float32)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


MARKDOWN = """# Pumps

The MX-9920-W is a wet-rotor pump. It weighs 3450 g.

## Limits

| Pump | Bar |
|---|---|
| MX-9920-W | 10 |
| MX-9902-W | 6 |

After a restore, run:

```sh
# not a heading
manage.py reconcile
```

- first item here
- second item there
"""


def test_blocks_are_exact_and_headings_are_none() -> None:
    found = source(MARKDOWN)
    blocks = quotable_blocks([found])
    for block in blocks:
        assert MARKDOWN[block.start - 100 : block.end - 100] == block.text
    assert [(block.kind, block.text.split("\n")[0]) for block in blocks] == [
        (BlockKind.SENTENCE, "The MX-9920-W is a wet-rotor pump."),
        (BlockKind.SENTENCE, "It weighs 3450 g."),
        (BlockKind.ROW, "| MX-9920-W | 10 |"),
        (BlockKind.ROW, "| MX-9902-W | 6 |"),
        (BlockKind.SENTENCE, "After a restore, run:"),
        (BlockKind.CODE, "```sh"),
        (BlockKind.SENTENCE, "- first item here"),
        (BlockKind.SENTENCE, "- second item there"),
    ]
    assert {block.heading for block in blocks[:2]} == {"Pumps"}
    assert {block.heading for block in blocks[2:]} == {"Limits"}
    assert blocks[2].table_head == "| Pump | Bar |\n|---|---|"


def test_records_of_a_table_are_blocks() -> None:
    content = "sku: A-100; name: Valve; bar: 6\nsku: A-200; name: Pump. Small; bar: 9\n"
    assert [block.text for block in quotable_blocks([source(content)])] == content.strip().split("\n")


def test_headings_of_plain_text_are_known_from_the_passage() -> None:
    content = "7.3 Limits of pressure\nThe maximum is 10 bar."
    (block,) = quotable_blocks([source(content, headings=("7.3 Limits of pressure",))])
    assert (block.text, block.heading) == ("The maximum is 10 bar.", "7.3 Limits of pressure")


def test_the_block_with_the_words_of_the_question_is_best() -> None:
    blocks = quotable_blocks([source(MARKDOWN)])
    best = score_blocks("How heavy is it, how much does it weigh in g?", blocks, letters)[0]
    assert best.block.text == "It weighs 3450 g."


def test_another_code_halves_the_score() -> None:
    rows = [block for block in quotable_blocks([source(MARKDOWN)]) if block.kind is BlockKind.ROW]
    asked = {scored.block.text: scored for scored in score_blocks("bar of MX-9902-W", rows, letters)}
    wrong = asked["| MX-9920-W | 10 |"]
    assert wrong.score == pytest.approx((wrong.similarity + wrong.coverage) / 4)
    right = asked["| MX-9902-W | 6 |"]
    assert right.score == pytest.approx((right.similarity + right.coverage) / 2)


def test_scores_lie_between_0_and_1_and_fall() -> None:
    scores = [scored.score for scored in score_blocks("pump weight bar", quotable_blocks([source(MARKDOWN)]), letters)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_no_blocks_no_scores() -> None:
    assert score_blocks("anything", [], letters) == []


def test_stems_and_codes() -> None:
    assert stems("What are the visiting hours?") == ["visit", "hour"]
    assert stems("Wat zijn de bezoekuren van de afdelingen?") == ["bezoekur", "afdel"]
    assert codes("E-041, MX-9920-W and LNG_102, but not BM25, 2026 or addVar") == {"e041", "mx9920w", "lng102"}


def test_without_vectors_words_alone_decide() -> None:
    blocks = quotable_blocks([source(MARKDOWN)])
    scored = score_blocks("How heavy, what weight in g does it weigh?", blocks, lambda _texts: None)
    assert scored[0].block.text == "It weighs 3450 g."
    assert scored[0].score == pytest.approx(scored[0].coverage)
    assert all(block.vector is None and block.similarity == 0.0 for block in scored)
