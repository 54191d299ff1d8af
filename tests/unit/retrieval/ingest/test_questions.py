from __future__ import annotations

import pytest

from retrieval.ingest.questions.by_rules import MAX_QUESTIONS, RuleBasedQuestions
from retrieval.protocols import QuestionGenerator
from retrieval.text.language import detect_language

generator: QuestionGenerator = RuleBasedQuestions()


@pytest.mark.parametrize(
    ("heading", "language", "question"),
    [
        ("Bezoekuren", "nl", "Wat zijn de bezoekuren?"),
        ("Klachtenprocedure", "nl", "Wat is de klachtenprocedure?"),
        ("Telefoonnummer", "nl", "Wat is het telefoonnummer?"),
        ("4.1 Wanneer neemt u contact op?", "nl", "Wanneer neemt u contact op?"),
        ("Hoe werkt het zoeken", "nl", "Hoe werkt het zoeken?"),
        ("2. WIE BETAALT DE REKENING?", "nl", "Wie betaalt de rekening?"),
        ("addVar", "nl", "Wat doet addVar?"),
        ("addVar", "en", "What does addVar do?"),
        ("`delVar(name)`", "en", "What does delVar do?"),
        ("SECRET_KEY", "en", "What is SECRET_KEY?"),
        ("How to reset a password", "en", "How do I reset a password?"),
        ("Installing the pump", "en", "How do I install the pump?"),
        ("Changing your address", "en", "How do I change my address?"),
        ("Who can see the panel", "en", "Who can see the panel?"),
        ("forEach or mapList?", "en", "forEach or mapList?"),
        ("Opening hours", "en", "What are the opening hours?"),
        ("Refund policy", "en", "What is the refund policy?"),
    ],
)
def test_headings_become_questions(heading: str, language: str, question: str) -> None:
    assert generator.generate("", ["Guide", heading], language) == [question]


@pytest.mark.parametrize(
    ("heading", "language"),
    [
        ("Introduction", "en"),
        ("Inleiding", "nl"),
        ("Using with a hidden field", "en"),
        ("Updating our serializer", "en"),
        ("Adding and removing", "en"),
        ("Setting pragma options", "en"),
        ("3.1", "en"),
        ("De kinderafdeling", "nl"),
        ("Bezoekuren", "fr"),
    ],
)
def test_no_question_is_better_than_a_bad_one(heading: str, language: str) -> None:
    assert generator.generate("", [heading], language) == []


@pytest.mark.parametrize(
    ("text", "language", "question"),
    [
        ("A webhook is a call that a server makes. It is sent once.", "en", "What is a webhook?"),
        ("Fields are the parts of a form. All fields count.", "en", "What are fields?"),
        ("## Daphne\n\nDaphne is a server written in Python for Unix.", "en", "What is Daphne?"),
        ("Een zorgproduct is een pakket van afspraken en onderzoeken.", "nl", "Wat is een zorgproduct?"),
        ("De sinusknoop is de natuurlijke gangmaker van het hart.", "nl", "Wat is de sinusknoop?"),
    ],
)
def test_definitions_become_questions(text: str, language: str, question: str) -> None:
    assert generator.generate(text, [], language) == [question]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("It is a call that a server makes.", "en"),
        ("The reason is a fault in the pump.", "en"),
        ("Probable causes are the valve and the seal.", "en"),
        ("This is the way in which it works.", "en"),
        ("Aanwezig zijn een arts en een verpleegkundige van de afdeling.", "nl"),
        ("Telefonisch is het bureau bereikbaar van negen tot vijf.", "nl"),
        ("```\nx = 1\n\nA webhook is a call that a server makes.\n\ny = 2\n```", "en"),
    ],
)
def test_what_only_looks_like_a_definition_gives_none(text: str, language: str) -> None:
    assert generator.generate(text, [], language) == []


def test_at_most_two_and_none_twice() -> None:
    text = "A pump is a machine for water. A valve is a part of it. A seal is a ring of rubber."
    questions = generator.generate(text, ["What is a pump?"], "en")
    assert questions == ["What is a pump?", "What is a valve?"]
    assert len(questions) == MAX_QUESTIONS


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The pump must be cleaned with water and the filter should be dry.", "en"),
        ("De pomp moet met water worden gereinigd en het filter moet droog zijn.", "nl"),
        ("Wie bewaart de sleutels tijdens de nacht?", "nl"),
        ("Why do pumps leak after winter?", "en"),
        ("La pompe est un appareil de la maison, et le filtre de l'eau doit être en place.", ""),
        ("Die Pumpe ist in der Wand und das Wasser was warm.", ""),
        ("The pump must be cleaned with it. De pomp moet met water en het filter ook.", ""),
        ("with for " + "Alpha Beta Gamma Delta Epsilon " * 12, ""),
        ("x = foo(bar, 12)", ""),
        ("", ""),
    ],
)
def test_the_language(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_an_unknown_language_is_detected() -> None:
    assert generator.generate("U kunt ons bellen voor een afspraak.", ["Bezoekuren"], "") == ["Wat zijn de bezoekuren?"]
