"""What the extractive answerer shows: which excerpts, where they end, and where their markers stand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from chat.composing.selection import rank
from chat.exceptions import NoAnswer
from chat.generators.extractive import ExtractiveGenerator
from chat.grounding.citations import cited_statements
from chat.grounding.evidence.answerability import (
    ANSWERABLE,
    SHOWABLE,
    SHOWABLE_BY_BLOCK,
    Answerability,
    Evidence,
    weigh,
)
from chat.grounding.evidence.units import blocks_of
from chat.grounding.verification import verify
from chat.questions.analysis import analyse
from chat.types import ContextSource
from retrieval.text.blocks.finding import find_blocks
from retrieval.text.blocks.procedures import Procedure
from tests.unit.chat.grounding.test_evidence import letters, source


def weighed(question: str, sources: Sequence[ContextSource], probability: float = 1.0) -> Evidence:
    """Of a probability that was chosen: letters say nothing of that."""
    evidence = weigh(question, sources, letters)
    return replace(evidence, answerability=Answerability(probability, {"best_block": 1.0}))


def answer(question: str, *sources: ContextSource, probability: float = 1.0) -> str:
    async def whole() -> str:
        generator = ExtractiveGenerator(lambda *of: weighed(*of, probability))
        return "".join([piece async for piece in generator.stream(question, sources)])

    return asyncio.run(whole())


TABLE = """# Errors

Some words above.

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
    shown = answer("the status of LNG-102", source(TABLE))
    assert shown == (
        "| Code | Meaning | What to do |\n|---|---|---|\n| LNG-102 | Variable exists already | Use `setVar` [1] |"
    )


def test_a_question_about_no_row_of_a_table_gets_the_table() -> None:
    hours = "# Opening hours\n\n| Day | Hours |\n|---|---|\n| Monday | 9.00 - 17.00 |\n| Friday | 9.00 - 12.00 |\n"
    shown = answer("What are the opening hours?", source(hours))
    assert shown.index("Monday") < shown.index("Friday")


def test_rows_without_the_head_of_their_table_are_shown_without_bars() -> None:
    """A long table is cut into passages, and only the first has its head."""
    rows = "| **judge** | What scores a saved answer. | `judges/` |\n| **lease** | The right to work on a row. | |\n"
    shown = answer("What is a judge?", source(rows))
    assert shown == "**judge** – What scores a saved answer. – `judges/` [1]"
    rows = "| `<td>` | A cell of a table, in HTML. |\n| `<tr>` | A row of it. |\n"
    assert answer("What is <td>?", source(rows)) == "**`<td>`** – A cell of a table, in HTML. [1]"


def test_a_row_without_a_closing_bar_has_its_marker_below() -> None:
    text = "| a | b |\n|---|---|\n| LNG-102 | exists already \\|\n"
    assert answer("the status of LNG-102", source(text)).endswith("exists already \\|\n\n[1]")


def test_a_record_and_a_sentence_end_with_their_marker() -> None:
    record = "sku: A-100; name: Valve; bar: 6"
    assert answer("bar of the valve A-100", source(record)) == f"{record} [1]"
    assert (
        answer("weight of the pump", source("The weight of the pump is low.")) == "The weight of the pump is low. [1]"
    )


def test_code_comes_with_the_sentence_that_announces_it_and_its_marker_below() -> None:
    shown = answer("Which command reconciles the indexes after the restore?", source(CODE))
    assert "After the restore, reconcile the indexes:\n\n```sh\nmanage.py reconcile --all\n```" in shown
    assert shown.endswith("\n\n[1]")


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("How long is parental leave?", "12 weeks"),
        ("How much is the bonus?", "$5,000"),
    ],
)
def test_the_value_that_is_asked_for_stands_before_its_sentence(question: str, value: str) -> None:
    text = "Parental leave is 12 weeks and is paid.\n\nThe bonus is $5,000 for each new hire.\n"
    shown = answer(question, source(text))
    assert shown.startswith(f"**{value}**\n\n"), shown


def test_of_several_values_none_is_set_off() -> None:
    shown = answer("How long is the leave?", source("The leave is 12 weeks, or 16 weeks for twins."))
    assert shown == "The leave is 12 weeks, or 16 weeks for twins. [1]"


def test_a_fact_is_refused_where_no_value_of_its_kind_stands_beside_it() -> None:
    with pytest.raises(NoAnswer) as refused:
        answer("How much does the baseline health plan cost?", source("The baseline health plan covers all employees."))
    assert refused.value.missing == "amount"


STEPS = """# Seals

## Changing a seal

You need a puller and alcohol.

1. Remove the motor.
2. Pull the old half.

3. Clean the seat.
4. Press in the new half.

## Storage

Store it dry.
"""


def test_a_procedure_is_shown_whole() -> None:
    shown = answer("How do I change the seal?", source(STEPS))
    assert [step in shown for step in ("You need a puller", "1. Remove", "2. Pull", "3. Clean", "4. Press")] == [
        True
    ] * 5
    assert "Store it dry" not in shown


def test_a_list_comes_with_what_introduces_it() -> None:
    text = "# Visits\n\nThese cannot be used:\n\n- candles\n- heaters\n- kettles\n\nAsk the ward for more.\n"
    shown = answer("Which things cannot be used?", source(text))
    assert shown.startswith("These cannot be used:\n\n- candles\n- heaters\n- kettles")


def test_a_section_told_in_subsections_names_all_of_them() -> None:
    text = "# Core values\n\n" + "".join(
        f"## {name}\n\n{name} is good for us all.\n\n" for name in ("Courage", "Care", "Calm")
    )
    shown = answer("name all the core values", source(text))
    assert [f"**{name}**" in shown for name in ("Courage", "Care", "Calm")] == [True] * 3


def test_several_things_asked_at_once_get_an_answer_each() -> None:
    text = (
        "A hack week is held every six weeks.\n\nWe meet on Monday. We eat together. We talk about it a lot, and then"
        " we talk about it again.\n\nA team of a hack week has at most 4 people.\n"
    )
    shown = answer("How often is a hack week and how big can a team be?", source(text))
    assert "every six weeks" in shown
    assert "at most 4 people" in shown


def test_a_heading_that_alone_names_the_thing_is_shown() -> None:
    text = "# Codes\n\n## E-041 Dry running\n\nThe pump draws less power than water requires. Fill it, then vent it.\n"
    assert answer("What does E-041 mean?", source(text)).startswith("**E-041 Dry running**\n\nThe pump draws")


def test_an_abbreviation_is_explained_where_it_is_spelt_out() -> None:
    text = (
        "# Planning\n\nObjectives and Key Results (OKRs) is a method to define goals.\n\n"
        "## Scoring OKRs\n\nOKRs are scored each quarter.\n"
    )
    assert answer("what are OKRs", source(text)).startswith("Objectives and Key Results (OKRs) is a method")


def test_a_definition_opens_the_section_of_that_name_behind_its_motto() -> None:
    text = (
        "# Serializers\n\n> Serializers are a thing of beauty.\n\nSerializers allow data to be converted to JSON.\n\n"
        "## Saving\n\nA serializer is saved by its method.\n"
    )
    assert "Serializers allow data to be converted" in answer("What is a serializer?", source(text))


@pytest.mark.parametrize(
    ("question", "meaning"),
    [
        ("what does RRF mean?", "The sum of reciprocal ranks"),
        ("what is MaxSim", "Each token takes its best match"),
        ("What is a judge?", "What scores an answer"),
    ],
)
def test_the_entry_of_a_glossary_comes_before_all_that_merely_uses_the_term(question: str, meaning: str) -> None:
    entries = (
        "| **RRF** | The sum of reciprocal ranks over the lists. |\n"
        "| **late interaction, MaxSim** | Each token takes its best match. |\n"
        "| **judge** | What scores an answer that was saved. |\n"
    )
    measured = "| Method | Mean |\n|---|---|\n| RRF | .725 |\n| MaxSim | .774 |\n"
    text = (
        f"# Quality\n\nRRF is behind MaxSim on the mean of the sets.\n\n{measured}\n"
        "## Judging\n\nThe worker also judges answers. A slow judge holds its place.\n\n"
        f"## Glossary\n\n| Term | Meaning |\n|---|---|\n{entries}"
    )
    assert meaning in answer(question, source(text))


def test_both_things_that_are_compared_are_shown() -> None:
    text = (
        "# Checks\n\n## Container check\n\nIt tells whether one container runs.\n\n"
        "## Other\n\nNothing here is of use to anybody.\n\n## Service check\n\nIt tells whether the service works.\n"
    )
    shown = answer("Difference between a container check and a service check?", source(text))
    assert "one container runs" in shown
    assert "the service works" in shown


def test_the_place_that_compares_both_is_shown_alone() -> None:
    rows = "| Repeated | changes nothing | adds another |\n| Returns | 200 | 201 |\n"
    table = f"| Question | `put` | `post` |\n|---|---|---|\n{rows}"
    text = (
        "# Calls\n\n## put\n\nPuts a thing in its place.\n\n## post\n\nPosts a thing to a list.\n\n"
        f"## Which one\n\n{table}"
    )
    shown = answer("What is the difference between put and post?", source(text))
    assert "changes nothing" in shown
    assert "adds another" in shown
    assert "in its place" not in shown


def test_a_definition_stands_under_the_heading_that_says_what_it_is() -> None:
    entry = "## E-107 Signal out of range\n\nWhile E-107 is shown, the pump runs slowly. Measure at terminal 7.\n"
    assert answer("What does E-107 mean?", source(f"# Errors\n\n{entry}")).startswith("**E-107 Signal out of range**")


def test_what_stands_in_a_step_fits_a_question_for_steps() -> None:
    text = "# Go online\n\n## 1. Clone\n\nClone all.\n\n## 2. Add\n\nAdd yours.\n\n## 3. Merge\n\nMerge the branch.\n"
    bare = source(text)
    procedure = Procedure(bare.block.start, bare.block.end, (), None)
    steps = replace(bare, block=replace(bare.block, procedures=(procedure,)))
    asked = analyse("Which steps do I follow to merge it?")
    scores = [rank(asked, weighed(asked.text, [each]))[0].score for each in (bare, steps)]
    assert scores[0] < scores[1]


def test_of_two_values_the_one_of_what_is_counted_is_shown() -> None:
    text = (
        "# Sick leave\n\nFor leave everybody has 15 days a year. More than 5 days on which one is sick are not kept.\n"
    )
    assert answer("How many sick days of leave are kept?", source(text)).startswith("**5 days**")


def test_a_role_is_not_set_off() -> None:
    assert answer("Who comes first?", source("A nurse decides who comes first. ")).startswith("A nurse decides")
    assert answer("Who decides?", source("In the end Anna Berg decides.")).startswith("**Anna Berg**")


def test_what_stands_under_the_same_question_answers_it_whole() -> None:
    section = "Bel 112 bij pijn die na een uur nog aanhoudt. Rijd niet zelf; om 11.00 uur is het druk."
    text = f"# Hart\n\n## 3. Wanneer belt u 112?\n\n{section}\n\n## Bellen\n\nOp 3 mei belt u 112 niet.\n"
    assert answer("Wanneer belt u 112?", source(text)) == f"{section} [1]"
    with pytest.raises(NoAnswer):
        answer("Wanneer belt u 112?", source("# Hart\n\n## Bellen\n\nBel 112 bij pijn die aanhoudt."))


def test_an_answer_in_a_faq_that_holds_what_is_asked_answers_another_question_too() -> None:
    text = (
        "# Bezoek\n\n### Mag mijn hond naar binnen?\n\nHuisdieren zijn nergens toegestaan.\n\n"
        "### Wat krijgt u mee?\n\nEen brief voor uw huisarts, en wat u voor de controle nodig hebt.\n"
    )
    assert "nergens" in answer("Mogen huisdieren mee?", source(text))


def test_a_table_of_html_is_shown_as_markdown() -> None:
    rows = "".join(
        f"<tr><td>{grade}</td><td>{pay}</td></tr>\n" for grade, pay in (("Junior", "$70k"), ("Senior", "$90k"))
    )
    shown = answer(
        "How much does a senior get?", source(f"<table>\n<tr><td>Grade</td><td>Pay</td></tr>\n{rows}</table>\n")
    )
    assert shown.endswith("| Grade | Pay |\n|---|---|\n| Senior | $90k [1] |")


def test_where_it_is_not_sure_up_to_three_places_are_shown() -> None:
    lines = (
        "Visits are short.",
        "Zebras quickly fix my visits.",
        "Bulky fjord gnomes vex visits.",
        "Wax mops jump visits.",
    )
    sources = [source(line, start=1000 * marker, marker=marker) for marker, line in enumerate(lines, start=1)]
    shown = answer("Are visits allowed?", *sources, probability=(ANSWERABLE + SHOWABLE) / 2)
    assert shown.count("\n\n") == 2


def test_a_block_that_reaches_beyond_its_source_is_cut_there_and_goes_on() -> None:
    text = "Do this:\n\n1. Open the valve.\n2. Fill the pump.\n3. Close the valve.\n"
    found = source(text)
    (steps,) = blocks_of(found)
    before = steps.start - 40
    longer = replace(steps, start=before, end=steps.end + 300, lead_in=(before, before + 20))
    cut = replace(found, block=replace(found.block, blocks=(longer,)))
    shown = answer("How do I open and fill and close the valve of the pump?", cut)
    assert "1. Open the valve." in shown
    assert shown.endswith("3. Close the valve. … [1]")


def test_every_excerpt_is_the_documents_own_text() -> None:
    found = source(CODE)
    for excerpt in ExtractiveGenerator(weighed).excerpts("reconcile the indexes after the restore", [found]):
        for start, end in excerpt.spans:
            assert found.block.start <= start < end <= found.block.end


def test_it_declines_what_is_not_answerable_and_where_there_is_nothing() -> None:
    question, text = "What does LNG-102 mean?", source(TABLE)
    assert answer(question, text, probability=ANSWERABLE)
    with pytest.raises(NoAnswer):
        answer(question, text, probability=SHOWABLE_BY_BLOCK - 0.001)
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


def test_code_without_a_fence_is_set_off_and_is_verbatim() -> None:
    definition = "// What is behind a # is no code.\nfunction stripComment(line) {\n\treturn line[1];\n}"
    script = f"/** Check a script. */\n\n{definition}\n"
    of_code = source(script)
    blocks = find_blocks(script, [(script.index("// What"), "stripComment")], is_code=True)
    of_code = replace(of_code, block=replace(of_code.block, blocks=tuple(block.moved(100) for block in blocks)))
    shown = answer("What does stripComment do?", of_code)
    assert shown.endswith(f"```\n{definition}\n```\n\n[1]")
    (citation,) = verify(shown, [of_code]).citations
    assert citation.verbatim
    assert citation.quote == definition

    text = "# Logging\n\nSet the logging level to debug:\n\n    # in settings\n    log(level=1)\n\nThen restart.\n"
    shown = answer("How do I set the logging level?", source(text))
    assert "Set the logging level to debug:\n\n```\n# in settings\nlog(level=1)\n```\n\n" in shown


def test_code_without_a_fence_that_goes_on_says_so_inside() -> None:
    lines = "\n".join(f"    log(level={number})" for number in range(90))
    of_code = source(f"# Logging\n\nSet the logging level to debug:\n\n{lines}\n")
    shown = answer("log level", of_code)
    assert shown.endswith(")\n…\n```\n\n[1]")
    assert verify(shown, [of_code]).citations[0].verbatim


def test_a_comment_in_a_fence_is_no_heading() -> None:
    shown = answer("Which command reconciles the indexes?", source(CODE.replace("manage", "# Slow.\nmanage")))
    assert "```sh\n# Slow.\nmanage.py" in shown


def test_code_that_is_too_long_swallows_no_marker() -> None:
    shown = answer("manage.py reconcile", source("```sh\n" + "manage.py reconcile --all\n" * 60 + "```\n"))
    assert shown.endswith("\n\n```\n\n[1]")
    statement = cited_statements(shown)[-1]
    assert "reconcile" in statement.text
    assert [marker.number for marker in statement.markers] == [1]
