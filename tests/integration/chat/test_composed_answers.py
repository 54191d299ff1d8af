"""Answers from documents as a reader gets them: whole sections, computed tables, refusals."""

import asyncio

import pytest

from chat.answering.pipeline import answer_question
from retrieval.types import SearchFilters

pytestmark = pytest.mark.django_db(transaction=True)

HANDBOOK = """---
title: Handbook
owner: people team
---

# Handbook of the workshop

## Parental leave

New parents get 12 weeks of paid leave after a birth or an adoption.

## Returning a pump

Pumps are taken back within the warranty:

1. Drain the pump and rinse it with water.
2. Fill in form R-12 and sign it.

3. Pack the pump upright.
4. Send it to the workshop in Delft.

## Meetings of the testing group

The testing group meets every two weeks on a Thursday in the canteen.
"""
CATALOGUE = """sku,name,category,weight_g,price_eur
MX-9920-W,Wet pump 9920,pump,3450,418.50
MX-9920-WS,Steel pump 9920,pump,3600,612.00
HX-2200,Hand pump,pump,1640,96.00
BV-100,Ball valve,valve,210,12.40
GV-200,Gate valve,valve,640,48.00
"""


@pytest.fixture
def workshop(collection, ingest):
    ingest(collection, "handbook.md", HANDBOOK)
    ingest(collection, "catalogue.csv", CATALOGUE)
    return collection


def ask(question, collection):
    async def events():
        return [event async for event in answer_question(question, SearchFilters(collections=(collection.pk,)))]

    searched, *_tokens, completed = asyncio.run(events())
    return searched, completed


def test_a_section_is_quoted_and_its_nearest_place_is_marked(workshop):
    _, completed = ask("How long is parental leave?", workshop)
    sentence = "New parents get 12 weeks of paid leave after a birth or an adoption."
    assert sentence in completed.text
    (cited,) = completed.citations
    assert cited.quote == completed.text[cited.marked_start : cited.marked_end] == sentence
    assert completed.text[cited.marker_start : cited.marker_end] == f"[{cited.marker}]"
    # The answer is quoted word for word, so no statement is checked.
    assert (cited.verbatim, completed.statements) == (True, ())


def test_a_procedure_is_whole_and_front_matter_is_no_answer(workshop):
    _, completed = ask("How do I return a pump?", workshop)
    for step in ("within the warranty:", "1. Drain", "2. Fill in form R-12", "3. Pack", "4. Send it"):
        assert step in completed.text
    assert "owner:" not in completed.text


def test_rows_that_a_question_names_are_shown_without_a_claim(workshop):
    draft, completed = ask("Which is nicer in price_eur and weight_g, MX-9920-W or GV-200?", workshop)
    assert not completed.refused
    assert "where sku = MX-9920-W / GV-200 (2 of 5):" in completed.text
    assert "| MX-9920-W | Wet pump 9920 | 418.50 euro | 3450 g [1] |" in completed.text
    assert "| GV-200 | Gate valve | 48.00 euro | 640 g [2] |" in completed.text
    assert {citation.marker for citation in completed.citations} == {1, 2}
    assert not draft.computed.is_computed


def test_a_misspelt_code_is_put_right_and_told(workshop):
    searched, completed = ask("How heavy is the HX2200?", workshop)
    assert "1640" in completed.text
    assert searched.trace.query == "How heavy is the HX-2200?"
