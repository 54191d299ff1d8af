"""Units of the context and how they are scored; vectors come from a small embedder of letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from chat.grounding.evidence.closeness import Closeness, Compare
from chat.grounding.evidence.relevance import (
    ENTRY_BONUS,
    OTHER_NAME_SHARE,
    RANK_WEIGHT,
    ScoredUnit,
    UnitScoring,
    codes,
    identifiers,
)
from chat.grounding.evidence.units import (
    QuotableUnit,
    UnitKind,
    quotable_units,
    sections_of,
    text_to_encode,
    whole_units,
)
from chat.grounding.words import stems
from chat.types import ContextSource
from retrieval.search.context import ContextBlock, Passage


def score_units(question: str, units: Sequence[QuotableUnit], compare: Compare) -> list[ScoredUnit]:
    return UnitScoring(question, units, compare).scored()


def source(content: str, *, start: int = 100, headings: tuple[str, ...] = (), marker: int = 1) -> ContextSource:
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
    return ContextSource(marker, ContextBlock(passage, (passage,), content, start, start + len(content), 1.0, 10))


def letters(question: str, units: Sequence[QuotableUnit]) -> Closeness:
    """Unit vectors of letter counts."""
    texts = [question, *map(text_to_encode, units)]
    counts = np.array([[text.lower().count(chr(97 + n)) + 0.01 for n in range(26)] for text in texts], dtype=np.float32)
    vectors = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    return Closeness(vectors[1:], vectors[1:] @ vectors[0])


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


def test_units_are_exact_and_headings_are_none() -> None:
    units = quotable_units([source(MARKDOWN)])
    for unit in units:
        assert MARKDOWN[unit.start - 100 : unit.end - 100] == unit.text
    assert [(unit.kind, unit.text.split("\n")[0]) for unit in units] == [
        (UnitKind.SENTENCE, "The MX-9920-W is a wet-rotor pump."),
        (UnitKind.SENTENCE, "It weighs 3450 g."),
        (UnitKind.ROW, "| MX-9920-W | 10 |"),
        (UnitKind.ROW, "| MX-9902-W | 6 |"),
        (UnitKind.SENTENCE, "After a restore, run:"),
        (UnitKind.CODE, "```sh"),
        (UnitKind.ITEM, "- first item here"),
        (UnitKind.ITEM, "- second item there"),
    ]
    assert {unit.heading for unit in units[:2]} == {"Pumps"}
    assert {unit.heading for unit in units[2:]} == {"Limits"}
    assert units[2].table_head == "| Pump | Bar |\n|---|---|"


def test_records_of_a_table_are_units() -> None:
    content = "sku: A-100; name: Valve; bar: 6\nsku: A-200; name: Pump. Small; bar: 9\n"
    assert [unit.text for unit in quotable_units([source(content)])] == content.strip().split("\n")


def test_headings_of_plain_text_are_known_from_the_passage() -> None:
    content = "7.3 Limits of pressure\nThe maximum is 10 bar."
    (unit,) = quotable_units([source(content, headings=("7.3 Limits of pressure",))])
    assert (unit.text, unit.heading) == ("The maximum is 10 bar.", "7.3 Limits of pressure")


def test_the_question_of_an_faq_is_the_heading_of_its_answer() -> None:
    content = "## Visits\n\n**May I bring a dog?**\n\nDogs stay outside.\n"
    (unit,) = quotable_units([source(content)])
    assert (unit.text, unit.heading) == ("Dogs stay outside.", "May I bring a dog?")


def test_rows_of_a_table_of_html_have_a_head_in_markdown() -> None:
    table = "<table>\n<tr><td>Grade</td><td>Pay</td></tr>\n<tr><td>Junior</td><td>$70k</td></tr>\n</table>\n"
    (unit,) = quotable_units([source(table)])
    assert unit.table_head == "| Grade | Pay |\n|---|---|"
    assert "Junior" in unit.text
    assert "Grade" not in unit.text


def test_a_list_is_a_unit_as_a_whole_with_what_introduces_it() -> None:
    content = "Bring the following:\n\n- a pass\n- some clothes\n- a list of medicine\n"
    (whole,) = whole_units([source(content)])
    assert whole.text == content.strip()
    assert whole.kind is UnitKind.WHOLE


def test_sections_know_their_levels_also_without_text_of_their_own() -> None:
    content = "# Values\n\n## Be kind\n\nAlways be kind.\n\n## Be quick\n\nNever be late.\n"
    assert [(section.heading, section.level, len(section.blocks)) for section in sections_of(source(content))] == [
        ("Values", 1, 0),
        ("Be kind", 2, 1),
        ("Be quick", 2, 1),
    ]


def test_the_unit_with_the_words_of_the_question_is_best() -> None:
    units = quotable_units([source(MARKDOWN)])
    best = score_units("How heavy is it, how much does it weigh in g?", units, letters)[0]
    assert best.unit.text == "It weighs 3450 g."


def test_another_code_halves_the_score_and_an_entry_of_the_code_gains() -> None:
    rows = [unit for unit in quotable_units([source(MARKDOWN)]) if unit.kind is UnitKind.ROW]
    asked = {scored.unit.text: scored for scored in score_units("bar of MX-9902-W", rows, letters)}
    wrong = asked["| MX-9920-W | 10 |"]
    assert wrong.score == pytest.approx((wrong.similarity + wrong.coverage) / 4)
    right = asked["| MX-9902-W | 6 |"]
    assert right.score == pytest.approx(min(1.0, (right.similarity + right.coverage) / 2 + ENTRY_BONUS))


def test_another_name_in_code_loses() -> None:
    (scored,) = score_units(
        "How many requests does a UserRate allow?",
        quotable_units([source("UploadView allows 20 requests.")]),
        lambda _question, _units: None,
    )
    assert scored.score == pytest.approx(scored.coverage * OTHER_NAME_SHARE)
    assert identifiers("UserRate, read_only and `setVar` of the MX-9920 for the UN") == {
        "userrate",
        "read_only",
        "setvar",
    }


def test_a_unit_of_a_passage_that_ranked_lower_loses() -> None:
    first = source("The pump weighs 3 kg.")
    second = source("The pump weighs 3 kg.", marker=2)
    second = replace(second, block=replace(second.block, score=0.0))
    scores = {
        each.unit.source.marker: each.score
        for each in score_units("What does the pump weigh?", quotable_units([first, second]), letters)
    }
    assert scores[1] - scores[2] == pytest.approx(RANK_WEIGHT)


def test_an_faq_that_asks_something_else_loses() -> None:
    content = "**May I bring a dog?**\n\nPlease ask the ward first.\n\n**May I bring food?**\n\nPlease ask the nurse.\n"
    best = score_units("May I bring some food?", quotable_units([source(content)]), letters)[0]
    assert best.unit.text == "Please ask the nurse."


def test_a_word_with_a_hyphen_is_found_where_it_is_written_as_one() -> None:
    units = quotable_units([source("We never use automerge here.\n\nWe merge by hand each day.")])
    assert score_units("auto-merge", units, letters)[0].unit.text == "We never use automerge here."


def test_scores_lie_between_0_and_1_and_fall() -> None:
    scores = [scored.score for scored in score_units("pump weight bar", quotable_units([source(MARKDOWN)]), letters)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_no_units_no_scores() -> None:
    assert score_units("anything", [], letters) == []


def test_stems_and_codes() -> None:
    assert stems("What are the visiting hours?") == ["visit", "hour"]
    assert stems("Wat zijn de bezoekuren van de afdelingen?") == ["bezoekur", "afdel"]
    assert codes("E-041, MX-9920-W and LNG_102, but not BM25, 2026 or addVar") == {"e041", "mx9920w", "lng102"}


def test_a_noun_of_a_verb_has_its_stem() -> None:
    assert stems("install validate create") == stems("installation validation create")


def test_without_vectors_words_alone_decide() -> None:
    units = quotable_units([source(MARKDOWN)])
    scored = score_units("How heavy, what weight in g does it weigh?", units, lambda _question, _units: None)
    assert scored[0].unit.text == "It weighs 3450 g."
    assert scored[0].score == pytest.approx(scored[0].coverage)
    assert all(each.vector is None and each.similarity == 0.0 for each in scored)
