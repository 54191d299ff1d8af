"""What the extractive answerer shows: which excerpts, where they end, and where their markers stand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from chat.exceptions import NoAnswer
from chat.generators.extractive import ExtractiveGenerator
from chat.grounding.answerability import ANSWERABLE, Answerability, Evidence, weigh
from chat.grounding.citations import cited_statements
from chat.types import Source
from tests.unit.chat.grounding.test_evidence import letters, source


def weighed(question: str, sources: Sequence[Source], probability: float = 1.0) -> Evidence:
    """Of a probability that was chosen: letters say nothing of that."""
    evidence = weigh(question, sources, letters)
    return replace(evidence, answerability=Answerability(probability, {"best_block": 1.0}))


def answer(question: str, *sources: Source, probability: float = 1.0) -> str:
    async def whole() -> str:
        generator = ExtractiveGenerator(lambda *of: weighed(*of, probability))
        return "".join([piece async for piece in generator.stream(question, sources)])

    return asyncio.run(whole())


TABLE = """Some words above.

| Code | Meaning | What to do |
|---|---|---|
| LNG-102 | Variable exists already | Use `setVar` |
| LNG-103 | No such variable | Check the spelling |
"""
CODE = """Restoring takes an hour.

After the restore, reconcile the indexes:

```sh
manage.py reconcile --all
```
"""


def test_a_row_comes_with_the_head_of_its_table_and_the_marker_in_its_last_cell() -> None:
    shown = answer("What does LNG-102 mean?", source(TABLE))
    assert shown == (
        "| Code | Meaning | What to do |\n|---|---|---|\n| LNG-102 | Variable exists already | Use `setVar` [1] |"
    )


def test_rows_of_one_table_are_shown_as_one() -> None:
    shown = answer("exists: LNG-102, LNG-103, spelling, variable, such", source(TABLE))
    assert shown.count("|---|---|---|") == 1
    assert shown.count("[1] |\n| LNG-10") == 1, shown


def test_rows_of_two_tables_with_the_same_head_stay_apart() -> None:
    shown = answer(
        "exists: LNG-102, LNG-103, spelling, variable, such",
        source(
            TABLE.replace(
                "| LNG-103",
                """
Words between.

| Code | Meaning | What to do |
|---|---|---|
| LNG-103""",
            )
        ),
    )
    assert shown.count("|---|---|---|") == 2, shown


def test_a_row_without_a_closing_bar_has_its_marker_below() -> None:
    text = "| a | b |\n|---|---|\n| LNG-102 | exists already \\|\n"
    assert answer("LNG-102 exists", source(text)).endswith("exists already \\|\n\n[1]")


def test_a_record_and_a_sentence_end_with_their_marker() -> None:
    record = "sku: A-100; name: Valve; bar: 6"
    assert answer("bar of the valve A-100", source(record)) == f"{record} [1]"
    assert answer("weight of the pump", source("The weight of the pump is 3 kg.")) == (
        "The weight of the pump is 3 kg. [1]"
    )


def test_code_comes_with_the_sentence_that_announces_it_and_its_marker_below() -> None:
    shown = answer("manage.py reconcile --all", source(CODE))
    assert shown == ("After the restore, reconcile the indexes:\n\n```sh\nmanage.py reconcile --all\n```\n\n[1]")


def test_code_that_nothing_announces_stands_alone() -> None:
    shown = answer("manage.py reconcile --all", source(CODE.replace("indexes:", "indexes.")))
    assert shown.startswith("```sh\nmanage.py reconcile --all\n```\n\n[1]")


def test_every_excerpt_is_the_documents_own_text() -> None:
    found = source(CODE)
    for excerpt in ExtractiveGenerator(weighed).excerpts("reconcile the indexes after the restore", [found]):
        assert excerpt.text == CODE[excerpt.start - found.block.start : excerpt.end - found.block.start]


def test_it_declines_what_is_not_answerable_and_where_there_is_nothing() -> None:
    question, text = "What does LNG-102 mean?", source(TABLE)
    assert answer(question, text, probability=ANSWERABLE)
    with pytest.raises(NoAnswer):
        answer(question, text, probability=ANSWERABLE - 0.001)
    with pytest.raises(NoAnswer):
        answer(question, source("\n"))


def test_a_number_in_brackets_of_the_document_names_no_source() -> None:
    assert answer("weight of the pump", source("The weight of the pump is 3 kg [2].")).endswith("is 3 kg ⟦2⟧. [1]")


def test_a_head_of_a_table_names_none_either() -> None:
    table = "| Code [2] | Meaning [3] |\n|---|---|\n| LNG-102 | Variable exists already |\n| LNG-103 | None |\n"
    assert answer("What does LNG-102 mean?", source(table)).startswith("| Code ⟦2⟧ | Meaning ⟦3⟧ |\n")


def test_code_keeps_its_brackets() -> None:
    shown = answer(
        "manage.py reconcile values", source(CODE.replace("--all", "values[2]").replace("the ind", "`a[3]` ind"))
    )
    assert shown.endswith("reconcile `a[3]` indexes:\n\n```sh\nmanage.py reconcile values[2]\n```\n\n[1]")


def test_code_that_is_too_long_swallows_no_marker() -> None:
    shown = answer("manage.py reconcile", source("```sh\n" + "manage.py reconcile --all\n" * 60 + "```\n"))
    assert shown.endswith("\n\n```\n\n[1]")
    statement = cited_statements(shown)[-1]
    assert "reconcile" in statement.text
    assert [marker.number for marker in statement.markers] == [1]
