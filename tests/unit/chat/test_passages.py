"""The quoted part of the best passage, the place of its marker, and the marked place."""

from dataclasses import replace

import pytest

from chat.answering.evidence import Evidence
from chat.answering.excerpts import LONGEST_BLOCK, LONGEST_PROSE
from chat.answering.extractive import quote_documents
from chat.exceptions import NoAnswerFound
from tests.support.contexts import source

TABLE = """# Errors

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


def evidence(*closeness, probability=0.9):
    return Evidence(probability, {}, by_words=False, closeness=dict(enumerate(closeness, start=1)))


def quoted(question, *sources, closeness=(1.0, 0.0)):
    return quote_documents(question, sources, evidence(*closeness))


def marked(quotation):
    first = quotation.citations[0]
    return quotation.text[first.marked_start : first.marked_end] if first.marked_start is not None else ""


def test_the_section_is_shown_whole_with_the_nearest_sentence_marked_and_cited():
    text = "The pump is green. It weighs 3450 g.\n\nIt is sold in Utrecht.\n"
    quotation = quoted("How much does it weigh?", source(text))
    assert quotation.text == "The pump is green. It weighs 3450 g.\n\nIt is sold in Utrecht. [1]"
    assert marked(quotation) == "It weighs 3450 g."
    (citation,) = quotation.citations
    assert citation.quote == text[citation.start - 100 : citation.end - 100] == "It weighs 3450 g."
    assert quotation.text[citation.marker_start : citation.marker_end] == "[1]"
    assert citation.verbatim


def test_a_passage_that_is_cut_within_its_block_is_shown_to_the_blocks_end():
    text = "The pump is green. It weighs 3450 g. Two people carry it.\n"
    assert quoted("weigh", source(text, passage=(0, 36))).text.endswith("Two people carry it. [1]")


def test_other_sections_are_not_shown():
    text = "## Size\n\nIt measures 20 cm.\n\n## Colour\n\nIt is green.\n"
    assert quoted("What is its colour?", source(text)).text == "**Colour**\n\nIt is green. [1]"


def test_an_opening_is_shown_with_the_sub_sections_behind_it():
    text = "## Roles\n\nEach role has a task.\n\n### Lead\n\nDecides.\n\n### Scribe\n\nWrites.\n\n## After\n\nRest.\n"
    shown = quoted("Which task has each role?", source(text)).text
    assert shown == "Each role has a task.\n\n**Lead**\n\nDecides.\n\n**Scribe**\n\nWrites. [1]"


@pytest.mark.parametrize(
    "announcement", ["Proceed as follows.", "These steps restore it: you need a key.", "Follow these steps."]
)
def test_an_announcement_is_followed_by_its_list(announcement):
    text = f"{'y' * LONGEST_PROSE}.\n\n{announcement}\n\n- stop the site\n- start it\n\nz{'z' * LONGEST_PROSE}.\n"
    shown = quoted(announcement, source(text)).text
    assert shown == f"{announcement}\n\n- stop the site\n- start it … [1]"


def test_a_long_procedure_begins_at_its_first_step():
    steps = "\n".join(f"{n}. Step {n} " + "x" * 160 for n in range(1, 31))
    shown = quoted("What is step 9?", source(steps)).text
    assert shown.startswith("1. Step 1")
    assert "9. Step 9" in shown


def test_a_list_without_a_lead_in_stands_below_its_heading():
    text = "## Not covered\n\n- wear of seals\n- damage by frost\n\nA claim for frost is declined.\n"
    assert quoted("A claim after frost?", source(text)).text.startswith("**Not covered**\n\n- wear of seals")
    led_in = text.replace("\n\n- wear", "\n\nThese are:\n\n- wear")
    assert quoted("A claim after frost?", source(led_in)).text.startswith("These are:")


def test_nothing_ends_in_a_colon_that_something_follows():
    steps = "To restore, do this:\n\n" + "\n".join(f"{n}. Step {n} " + "x" * 160 for n in range(1, 9))
    shown = quoted("How do I restore?", source("y" * LONGEST_PROSE + ".\n\n" + steps + "\n")).text
    assert shown.startswith("To restore, do this:")
    assert "8. Step 8" in shown


def test_of_a_section_longer_than_a_screen_what_stands_around_the_place_is_shown_and_it_goes_on():
    paragraphs = [f"Paragraph {n} says " + "words " * 30 for n in range(20)]
    shown = quoted("What does paragraph 10 say?", source("\n\n".join(paragraphs) + "\n")).text
    assert "Paragraph 10" in shown
    assert len(shown) < LONGEST_PROSE + 50
    assert shown.endswith(" … [1]")


def test_a_long_table_shows_the_rows_around_the_marked_one_below_its_header():
    rows = "".join(f"| LNG-{n} | Meaning {n} | Advice {n} |\n" for n in range(200, 300))
    quotation = quoted("the meaning of LNG-250", source(TABLE + rows))
    assert quotation.text.startswith("| Code | Meaning | What to do |\n|---|---|---|\n")
    assert "| LNG-250 |" in quotation.text
    assert len(quotation.text) < LONGEST_BLOCK
    assert "LNG-250" in marked(quotation)


def test_a_table_has_its_marker_in_its_last_cell():
    quotation = quoted("the meaning of LNG-102", source(TABLE))
    assert quotation.text.endswith("| LNG-103 | No such variable | Check the spelling [1] |")
    assert marked(quotation) == "| LNG-102 | Variable exists already | Use `setVar` |"


def test_code_stands_below_what_announces_it_and_its_marker_below():
    shown = quoted("Which command reconciles the indexes after the restore?", source(CODE)).text
    assert "After the restore, reconcile the indexes:\n\n```sh\nmanage.py reconcile --all\n```" in shown
    assert shown.endswith("\n\n[1]")


def test_of_records_the_nearest_row_alone_is_shown_without_a_mark():
    records = "sku: A-100; name: Valve; bar: 6\nsku: A-200; name: Pump; bar: 9\n"
    quotation = quoted("bar of the pump A-200", source(records))
    assert quotation.text == "sku: A-200; name: Pump; bar: 9 [1]"
    assert marked(quotation) == ""


def further(*texts, scores, question="weigh the pump", **features):
    sources = [
        source(text, marker=n, score=score) for n, (text, score) in enumerate(zip(texts, scores, strict=True), 1)
    ]
    found = replace(evidence(*[0.9] * len(sources)), features=features)
    return [each.text for each in quote_documents(question, sources, found).alternatives]


def test_the_section_comes_first_whose_heading_is_the_question_and_not_one_below_it():
    below = "### Outside the visiting hours\n\nLawyers may come outside the visiting hours.\n"
    hours = source("## Visiting hours\n\nFrom two to four.\n", marker=2, score=1.0, headings=("Visiting hours",))
    found = [source(below, marker=1, score=2.0, headings=("Visiting hours",)), hours]
    assert "From two to four." in quote_documents("What are the visiting hours?", found, evidence(0.9, 0.9)).text


TEXTS = ("The pump weighs 3450 g.", "Weighing takes two people.", "A scale weighs.", "Pumps are green.", "Pumps hum.")


@pytest.mark.parametrize(("lead", "number"), [(2.0, 1), (1.0, 1), (0.7, 2), (0.3, 3), (0.0, 3)])
def test_the_smaller_the_lead_of_the_best_passage_the_more_others_stand_beside_it(lead, number):
    scores = [3.0, *(3.0 - lead - n / 10 for n in range(4))]
    assert further(*TEXTS, scores=scores) == list(TEXTS[1 : 1 + number])


def test_a_curators_question_is_answered_by_its_passage_alone():
    assert further(*TEXTS[:2], scores=(1.0, 1.0), given=1.0) == []


def test_no_place_is_shown_twice():
    text = "The pump weighs 3450 g.\n\nIt is green.\n"
    both = [source(text, passage=passage) for passage in ((0, 24), (25, 37))]
    assert (
        quote_documents("weigh the pump", both, evidence(0.9, 0.9)).text
        == "The pump weighs 3450 g.\n\nIt is green. [1]"
    )
    assert not quote_documents("weigh the pump", both, evidence(0.9, 0.9)).alternatives


def test_the_same_words_of_two_documents_are_shown_once():
    text = "It weighs [3450 g](weights.md).\n\nIt is sold in Utrecht.\n"
    copy, other = source(text, marker=2, score=0.9), source("It weighs little.", marker=3, score=0.8)
    found = quoted("weighs", source(text), copy, other)
    assert [each.text for each in found.alternatives] == ["It weighs little."]


def test_an_alternative_has_no_marker_and_names_its_place():
    text = "## Size\n\nIt measures 20 cm.\n\n## Colour and paint\n\nIt is green.\n"
    (other,) = quote_documents(
        "its colour", [source(TEXTS[0], score=2.0), source(text, marker=2)], evidence(0.9, 0.9)
    ).alternatives
    # The text contains the other short section of the passage, too.
    assert other.text == "**Size**\n\nIt measures 20 cm.\n\n**Colour and paint**\n\nIt is green."
    assert text[other.start - 100 : other.end - 100] == other.quote == "It is green."


def test_the_best_source_is_quoted_wherever_it_stands():
    low = source("The pump is green.", marker=1, score=1.0)
    high = source("The pump weighs 3450 g.", marker=2, score=2.0)
    assert quoted("weigh", low, high, closeness=(0.5, 1.0)).text == "The pump weighs 3450 g. [2]"


def test_a_source_that_answers_by_itself_is_quoted_before_a_higher_one_that_does_not():
    high = source("Neem uw medicijnen mee.", marker=1, score=2.0)
    low = source("The archive is encrypted.", marker=2, score=1.0)
    found = replace(evidence(0.1, 0.7), alone=frozenset({2}))
    assert quote_documents("Welke versleuteling?", [high, low], found).text == "The archive is encrypted. [2]"


def test_a_passage_that_is_not_even_near_by_itself_comes_behind_one_that_is():
    pair = [source("It weighs 3450 g.", score=1.4), source("There are dark themes.", marker=2, score=1.0)]
    assert quote_documents("a dark theme", pair, replace(evidence(0.4, 0.1), near=frozenset({2}))).text.endswith("[2]")


def test_numbers_in_brackets_of_a_document_are_no_markers():
    quotation = quoted("weigh", source("It weighs 3450 g, see [7]. It is green."))
    assert [citation.marker for citation in quotation.citations] == [1]
    assert "⟦7⟧" in quotation.text


def test_what_is_probably_not_answered_is_not_quoted():
    with pytest.raises(NoAnswerFound):
        quote_documents("weigh", [source("It weighs 3450 g.")], evidence(1.0, probability=0.1))


def test_tags_of_templates_are_not_shown_but_in_code():
    text = "Set it {% if x %}in{% endif %} the menu {{< note >}}, with `{% raw %}` or {{ site.name }}.\n"
    assert quoted("the menu", source(text)).text == "Set it in the menu , with `{% raw %}` or . [1]"


def test_links_beside_the_document_and_pictures_are_not_shown():
    text = """You can set [the pump's weight](../settings.md#weight) here,[^1] in grams.

!!! tip "Shortcut"
    Press [the key](https://keys.example/).

    ```sh
    pump --weight ![x](y)
    ```

![Screenshot](img/weight.png){ class="shadow" }

It is saved at once.
"""
    quotation = quoted("set the weight", source(text))
    assert quotation.text == (
        "You can set the pump's weight here, in grams.\n\n**Shortcut**\n\nPress [the key](https://keys.example/).\n\n"
        "```sh\npump --weight ![x](y)\n```\n\nIt is saved at once. [1]"
    )
    assert marked(quotation) == "You can set the pump's weight here, in grams."


def test_addresses_of_links_take_no_room_of_an_excerpt():
    places = "".join(f"- The [folder {number}](../../{'long-' * 30}address.md)\n" for number in range(8))
    text = f"# Restoring\n\nTo restore it, the files are needed.\n\nHave these as well:\n\n{places}"
    assert "folder 7" in quoted("restore files", source(text)).text


def test_the_address_of_a_link_is_not_about_the_question():
    text = "Avoid [limits](faq.md#why-does-my-server-need-memory) at all. It takes 3 GB of memory.\n"
    assert marked(quoted("how much memory does my server need", source(text))) == "It takes 3 GB of memory."


def test_steps_below_the_title_of_a_tab_are_no_code():
    text = '=== "The menu"\n\n     1. Open the menu.\n     2. Choose [*save*](save.md).\n\nThen it is saved.\n'
    quotation = quoted("choose save", source(text))
    assert quotation.text.strip() == quotation.text
    assert quotation.text.endswith("**The menu**\n\n1. Open the menu.\n2. Choose *save*.\n\nThen it is saved. [1]")


def test_an_excerpt_that_opens_a_note_begins_with_its_title():
    text = '# Membership\n\n??? question "How do I join?"\n\n    You sign in.\n'
    quotation = quoted("join", source(text))
    assert quotation.text == "**How do I join?**\n\nYou sign in. [1]"
    assert quotation.text[quotation.citations[0].marker_start :] == "[1]"


def test_a_picture_and_the_title_of_a_tab_are_no_place_to_quote():
    text = '=== "The menu"\n\n    ![The menu of the pump](menu.png)\n\n    Choose *Save*.\n'
    assert "Choose" in marked(quoted("the menu of the pump", source(f"{text}\nAnd so on.\n")))


def test_a_table_of_contents_is_no_answer():
    contents = (
        "# Guide\n\n- [Installing the pump](#installing)\n  - [Installing on Debian](debian.md)\n- [Removing it](#rm)\n"
    )
    text = "## Installing\n\nThe pump is installed with two bolts.\n"
    shown = quoted("How do I go about installing the pump?", source(contents), source(text, marker=2))
    assert shown.text == "The pump is installed with two bolts. [2]"
    with pytest.raises(NoAnswerFound):
        quoted("How do I go about installing the pump?", source(contents))
    # A link to another site may be what is asked for, and words beside a link say something.
    assert "example.org" in quoted("Where is the shop?", source("- [The shop](https://example.org/)\n")).text
    assert "See" in quoted("Where is the shop?", source("- See [the shop](shop.md)\n")).text


def test_the_whole_passage_stands_beside_an_answer_that_shows_little_of_it():
    text = "## Size\n\nIt measures 20 cm and fits on most tables.\n\n## Colour\n\nIt is green.\n"
    found = quote_documents("What is its colour?", [source(text)], evidence(0.9))
    assert found.text == "**Colour**\n\nIt is green. [1]"
    (whole,) = found.alternatives
    assert whole.text == "**Size**\n\nIt measures 20 cm and fits on most tables.\n\n**Colour**\n\nIt is green."
    assert whole.quote == "It measures 20 cm and fits on most tables."
    most = text.replace("fits", "fits, with its feet folded and its cover closed, even with a cable behind it,")
    assert quote_documents("What is its size?", [source(most)], evidence(0.9)).alternatives == ()
