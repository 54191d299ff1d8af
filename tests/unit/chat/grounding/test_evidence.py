"""Parts of the context and how they are scored; vectors come from a small embedder of letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from chat.grounding.evidence.parts import PartKind, parts_of
from chat.grounding.evidence.scoring import codes, score_parts, stems
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


def test_parts_are_exact_and_headings_are_none() -> None:
    found = source(MARKDOWN)
    parts = parts_of([found])
    for part in parts:
        assert MARKDOWN[part.start - 100 : part.end - 100] == part.text
    assert [(part.kind, part.text.split("\n")[0]) for part in parts] == [
        (PartKind.SENTENCE, "The MX-9920-W is a wet-rotor pump."),
        (PartKind.SENTENCE, "It weighs 3450 g."),
        (PartKind.ROW, "| MX-9920-W | 10 |"),
        (PartKind.ROW, "| MX-9902-W | 6 |"),
        (PartKind.SENTENCE, "After a restore, run:"),
        (PartKind.CODE, "```sh"),
        (PartKind.SENTENCE, "- first item here"),
        (PartKind.SENTENCE, "- second item there"),
    ]
    assert {part.heading for part in parts[:2]} == {"Pumps"}
    assert {part.heading for part in parts[2:]} == {"Limits"}
    assert parts[2].lead == "| Pump | Bar |\n|---|---|"


def test_records_of_a_table_are_parts() -> None:
    content = "sku: A-100; name: Valve; bar: 6\nsku: A-200; name: Pump. Small; bar: 9\n"
    assert [part.text for part in parts_of([source(content)])] == content.strip().split("\n")


def test_headings_of_plain_text_are_known_from_the_passage() -> None:
    content = "7.3 Limits of pressure\nThe maximum is 10 bar."
    (part,) = parts_of([source(content, headings=("7.3 Limits of pressure",))])
    assert (part.text, part.heading) == ("The maximum is 10 bar.", "7.3 Limits of pressure")


def test_the_part_with_the_words_of_the_question_is_best() -> None:
    parts = parts_of([source(MARKDOWN)])
    best = score_parts("How heavy is it, how much does it weigh in g?", parts, letters)[0]
    assert best.part.text == "It weighs 3450 g."


def test_another_code_halves_the_score() -> None:
    rows = [part for part in parts_of([source(MARKDOWN)]) if part.kind is PartKind.ROW]
    asked = {scored.part.text: scored for scored in score_parts("bar of MX-9902-W", rows, letters)}
    wrong = asked["| MX-9920-W | 10 |"]
    assert wrong.score == pytest.approx((wrong.similarity + wrong.coverage) / 4)
    right = asked["| MX-9902-W | 6 |"]
    assert right.score == pytest.approx((right.similarity + right.coverage) / 2)


def test_scores_lie_between_0_and_1_and_fall() -> None:
    scores = [scored.score for scored in score_parts("pump weight bar", parts_of([source(MARKDOWN)]), letters)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_no_parts_no_scores() -> None:
    assert score_parts("anything", [], letters) == []


def test_stems_and_codes() -> None:
    assert stems("What are the visiting hours?") == ["visit", "hour"]
    assert stems("Wat zijn de bezoekuren van de afdelingen?") == ["bezoekur", "afdel"]
    assert codes("E-041, MX-9920-W and LNG_102, but not BM25, 2026 or addVar") == {"e041", "mx9920w", "lng102"}


def test_without_vectors_words_alone_decide() -> None:
    parts = parts_of([source(MARKDOWN)])
    scored = score_parts("How heavy, what weight in g does it weigh?", parts, lambda _texts: None)
    assert scored[0].part.text == "It weighs 3450 g."
    assert scored[0].score == pytest.approx(scored[0].coverage)
    assert all(part.vector is None and part.similarity == 0.0 for part in scored)
