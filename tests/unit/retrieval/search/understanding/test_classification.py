import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrieval.search.understanding.classification import NO_PATTERN, RULES, classify_question
from retrieval.types import QueryClass

COMPARISON, TROUBLESHOOTING, CODE, CONCEPTUAL, DEFAULT = (
    QueryClass.COMPARISON,
    QueryClass.TROUBLESHOOTING,
    QueryClass.CODE,
    QueryClass.CONCEPTUAL,
    QueryClass.DEFAULT,
)
BY_RULE = [
    ("What is the difference between addVar and setVar?", COMPARISON, "comparison words"),
    ("Wat is het verschil tussen storing 12 en storing 13?", COMPARISON, "comparison words"),
    ("Is the MX-9920-W heavier than the MX-9902-W?", COMPARISON, "comparative"),
    ("Is de nieuwe pomp zuiniger dan de oude?", COMPARISON, "comparative"),
    ("Should I take the bus or the train?", COMPARISON, "alternatives"),
    ("Moet ik de bus of de trein nemen?", COMPARISON, "alternatives"),
    ("TypeError: load_index() takes 2 positional arguments", TROUBLESHOOTING, "error message"),
    ("storing F12", TROUBLESHOOTING, "error message"),
    ("What is a wet rotor?", CONCEPTUAL, "definition"),
    ("Wat is cardioversie?", CONCEPTUAL, "definition"),
    ("Who repairs broken lamps?", DEFAULT, "question of count or person"),
    ("Hoeveel fouten mag ik maken?", DEFAULT, "question of count or person"),
    ("My load_index crashed", TROUBLESHOOTING, "error words"),
    ("Ik krijg een foutmelding bij het opstarten", TROUBLESHOOTING, "error words"),
    ("The conveyor doesn’t move", TROUBLESHOOTING, "negated expectation"),
    ("De pomp werkt niet meer", TROUBLESHOOTING, "negated expectation"),
    ("The fan keeps rattling", TROUBLESHOOTING, "symptom"),
    ("De kraan blijft druppelen", TROUBLESHOOTING, "symptom"),
    ("addVar", CODE, "identifier"),
    ("What does --dry-run do?", CODE, "identifier"),
    ("sort a list in python", CODE, "programming words"),
    ("voorbeeld van een reguliere expressie", CODE, "programming words"),
    ("How do I declare a constant?", CODE, "words of code in company"),
    ("Hoe definieer ik een klasse?", CODE, "words of code in company"),
    ("What is the phone number of the ward?", DEFAULT, "fact words"),
    ("Wat zijn de openingstijden van de winkel?", DEFAULT, "fact words"),
    ("How do I book a room?", DEFAULT, "how-to words"),
    ("Hoe reserveer ik een zaal?", DEFAULT, "how-to words"),
    ("Explain reciprocal rank fusion", CONCEPTUAL, "concept words"),
    ("Waarom is de lucht blauw?", CONCEPTUAL, "concept words"),
    ("visiting hours cardiology", DEFAULT, NO_PATTERN),
]


@pytest.mark.parametrize(("question", "query_class", "rule"), BY_RULE)
def test_class_of_question_and_the_rule_that_decided(question, query_class, rule):
    classification = classify_question(question)
    assert (classification.query_class, classification.rule) == (query_class, rule)


def test_every_rule_decides_a_question_here():
    assert {rule for _, _, rule in BY_RULE} == {name for name, _, _ in RULES} | {NO_PATTERN}


@pytest.mark.parametrize(
    ("question", "query_class"),
    [
        ("terror attacks history", DEFAULT),
        ("Verschillende locaties van de polikliniek", DEFAULT),
        ("compile a list of suppliers", DEFAULT),
        ("import duties on steel", DEFAULT),
        ("What is a class action?", CONCEPTUAL),
        ("What is the function of the liver?", CONCEPTUAL),
        ("employee(s) of the month", DEFAULT),
        ("exceptions to the dress code", DEFAULT),
    ],
)
def test_words_that_only_look_the_part_decide_nothing(question, query_class):
    assert classify_question(question).query_class is query_class


@pytest.mark.parametrize("part", ["MX-9920-W", "P-200 motor", "7731-B-204", "PayPal", "GitHub", "info@example.com"])
def test_part_numbers_and_names_are_not_code(part):
    assert classify_question(part).query_class is DEFAULT


def test_capitals_spaces_and_apostrophes_make_no_difference_to_words():
    assert classify_question("WHAT  IS THE\nDIFFERENCE").rule == "comparison words"
    assert classify_question("the door won’t open") == classify_question("The door won't open")


@given(st.text(max_size=3000))
@example("")
@example("\x00")
@example("\ud800")
@example("İ’" * 800)
def test_any_text_has_a_class(text):
    assert classify_question(text).query_class in QueryClass


HOSTILE = [
    "a" * 100_000, "which a, " * 20_000, "what is " + "a " * 50_000, "`" * 100_000, "a.b" * 50_000,
    "more a a a " * 20_000, "waarom krijg ik " * 10_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_hostile_text_takes_no_longer_than_its_length_allows(text):
    started = time.process_time()
    classify_question(text)
    assert time.process_time() - started < 0.1
