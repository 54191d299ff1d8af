"""What a question asks for: its kind, the value it expects, its subject and its parts."""

from __future__ import annotations

import pytest
from chat.questions.analysis import QuestionKind, ValueKind, analyse, asks_what_it_is

F, K = ValueKind, QuestionKind


@pytest.mark.parametrize(
    ("text", "kind", "expects"),
    [
        ("How long is the guarantee on a bicycle?", K.FACT, F.DURATION),
        ("How often does the boiler need a check-up?", K.FACT, F.DURATION),
        ("How many days notice must a tenant give?", K.FACT, F.DURATION),
        ("How long must the title of a report be?", K.FACT, F.NUMBER),
        ("Within what time must a tenant answer?", K.FACT, F.DURATION),
        ("and within what time must it be paid?", K.FACT, F.DURATION),
        ("how mutch does a locker cost", K.FACT, F.AMOUNT),
        ("whats the price of a day ticket", K.FACT, F.AMOUNT),
        ("Wat kost een dagkaart?", K.FACT, F.AMOUNT),
        ("How much water does the tank hold?", K.FACT, F.NUMBER),
        ("How heavy is the anchor?", K.FACT, F.NUMBER),
        ("Hoe hoog is de brug?", K.FACT, F.NUMBER),
        ("When does the museum open again?", K.FACT, F.DATE),
        ("In which year was the school founded?", K.FACT, F.DATE),
        ("Hoe laat begint de les?", K.FACT, F.TIME),
        ("What are the opening hours of the library?", K.FACT, F.TIME),
        ("If the lift is stuck, who must be called?", K.FACT, F.PERSON),
        ("Wie is de penningmeester van de vereniging?", K.FACT, F.PERSON),
        ("Where is the first-aid kit kept?", K.FACT, F.PLACE),
        ("which city hosts the fair", K.FACT, F.PLACE),
        ("phone number of the front desk", K.FACT, F.CONTACT),
        ("Wat is het e-mailadres van de redactie?", K.FACT, F.CONTACT),
        ("What is the maximum pressure of the boiler?", K.FACT, F.NUMBER),
        ("How many boats are in the harbour?", K.COUNT, F.NUMBER),
        ("number of members with a key", K.COUNT, F.NUMBER),
        ("Which boat has the longest mast?", K.SUPERLATIVE, None),
        ("goedkoopste kaartje", K.SUPERLATIVE, None),
        ("What is the difference between oil and grease?", K.COMPARISON, None),
        ("Is oil cheaper than gas?", K.COMPARISON, None),
        ("Compare A and B", K.COMPARISON, None),
        ("Are bicycles allowed on the platform?", K.YES_NO, None),
        ("mag ik hier roken", K.YES_NO, None),
        ("Can you tell me whether dogs are allowed?", K.YES_NO, None),
        ("Why was the bridge closed?", K.REASON, None),
        ("What is a bowline?", K.DEFINITION, None),
        ("Wat betekent code 7?", K.DEFINITION, None),
        ("spare keys", K.DEFINITION, None),
        ("How do I replace the filter?", K.PROCEDURE, None),
        ("hoe kan ik mijn abonnement opzeggen", K.PROCEDURE, None),
        ("steps to close the shop", K.PROCEDURE, None),
        ("Which tools do I need?", K.LIST, None),
        ("name all the rooms", K.LIST, None),
        ("What must a contract contain?", K.LIST, None),
        ("Welke boeken zijn er?", K.LIST, None),
        ("What does parse_header do?", K.CODE, None),
        ("command to restart the server", K.CODE, None),
        ("Can you write me a song about rain?", K.OTHER, None),
        ("", K.OTHER, None),
    ],
)
def test_the_wording_tells_the_kind_and_the_value(text: str, kind: QuestionKind, expects: ValueKind | None) -> None:
    question = analyse(text)
    assert (question.kind, question.expects) == (kind, expects)


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Hello! Could you please tell me how long the course lasts? Many thanks!", "course lasts"),
        ("What does E-17 mean?", "E-17"),
        ("Goedemorgen, kunt u mij zeggen wat een sleutel kost? Alvast bedankt.", "sleutel kost"),
        ("learning budget", "learning budget"),
        ("?", "?"),
    ],
)
def test_the_topic_lacks_what_only_asks(text: str, topic: str) -> None:
    assert analyse(text).topic == topic


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "How often is the regatta and how big can a crew be?",
            ["How often is the regatta?", "How big can a crew be (regatta)?"],
        ),
        ("What does E-17 mean and what should I do?", ["What does E-17 mean?", "What should I do about E-17?"]),
        (
            "How many guests can I bring and who do I report them to?",
            ["How many guests can I bring?", "Who do I report guests to?"],
        ),
        (
            "I want to rent the hall. Who decides about it, and how do I pay?",
            ["Who decides about rent the hall?", "How do I pay (rent the hall)?"],
        ),
        (
            "Wat kost een kaartje en waar kan ik het kopen?",
            ["Wat kost een kaartje?", "Waar kan ik het kopen (kaartje)?"],
        ),
        ("Compare oil and grease", []),
        ("When and where is the meeting?", []),
        ("What is the difference between oil and grease and which is better?", []),
        ("When a guest leaves early, who pays?", []),
    ],
)
def test_several_questions_are_each_made_complete(text: str, parts: list[str]) -> None:
    assert [part.text for part in analyse(text).parts] == parts


def test_a_part_has_a_kind_of_its_own() -> None:
    parts = analyse("Who can be skipper and what does the mate do?").parts
    assert [(part.kind, part.expects) for part in parts] == [(K.FACT, F.PERSON), (K.DEFINITION, None)]


def test_the_language_is_told_and_nothing_raises() -> None:
    assert analyse("Hoe lang duurt de cursus en wat kost het?").language == "nl"
    for text in ("what " * 500, "a, who " * 500, "\x00", "or " * 999, "and and and"):
        analyse(text)


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("What is a lease?", True),
        ("what's a premium", True),
        ("Wat is een TIA?", True),
        ("what is the price of it?", False),
        ("employees in Sales", False),
    ],
)
def test_what_a_thing_is_is_asked_in_so_many_words(question: str, is_asked: bool) -> None:
    assert asks_what_it_is(question) is is_asked
