"""Whether the kind of value that is asked for stands beside what is asked about."""

from __future__ import annotations

import pytest
from chat.questions.analysis import ValueKind, analyse
from chat.questions.presence import (
    LARGEST_GAP,
    PresencePassage,
    assess_presence,
    find_answer_values,
    without_replacements,
)

NEAR, FAR = 0.8, 0.4


def passages(*texts: tuple[str, float], source: int = 1, heading: str = "") -> list[PresencePassage]:
    return [PresencePassage(source, text, heading, similarity) for text, similarity in texts]


def test_a_value_in_the_closest_passage_is_present() -> None:
    presence = assess_presence(
        analyse("How much is a locker?"), passages(("A locker is €5 a day.", NEAR), ("Hello.", FAR))
    )
    assert presence.is_present
    assert presence.value_similarity == presence.similarity == NEAR


def test_a_value_elsewhere_counts_as_far_as_it_is_close() -> None:
    texts = passages(
        ("Lockers are beside the lift.", NEAR), ("They are grey.", FAR), ("Tea.", 0.0), ("Tea is €2.", 0.5)
    )
    presence = assess_presence(analyse("How much is a locker?"), texts)
    assert presence.missing is ValueKind.AMOUNT
    assert presence.value_similarity == NEAR - LARGEST_GAP == pytest.approx(0.5)


def test_a_value_right_beside_the_closest_passage_is_present() -> None:
    texts = passages(("Lockers are beside the lift.", NEAR), ("They cost €5 a day.", FAR))
    assert assess_presence(analyse("How much is a locker?"), texts).is_present


def test_a_value_of_another_source_is_not_beside() -> None:
    texts = [
        *passages(("Lockers are beside the lift.", NEAR)),
        *passages(("They cost €5 a day.", FAR), source=2),
    ]
    assert assess_presence(analyse("How much is a locker?"), texts).missing is ValueKind.AMOUNT


def test_a_value_in_the_heading_is_present() -> None:
    texts = passages(("The museum was opened by the mayor.", NEAR), heading="3 May 1998")
    assert assess_presence(analyse("When was the museum opened?"), texts).is_present


def test_what_the_question_names_is_not_its_answer() -> None:
    texts = passages(("The Riverside Club meets in the hall.", NEAR))
    assert assess_presence(analyse("Who is the head of the Riverside Club?"), texts).missing is ValueKind.PERSON


def test_a_count_is_of_what_is_counted() -> None:
    asked = analyse("How many boats does the club own?")
    assert assess_presence(asked, passages(("The club has 40 members.", NEAR))).missing is ValueKind.NUMBER
    assert assess_presence(asked, passages(("The club owns 12 boats.", NEAR))).is_present


@pytest.mark.parametrize("question", ["What is a bowline?", "Why is it closed?", "Is it open?", "spare keys"])
def test_a_question_that_asks_for_no_value_misses_none(question: str) -> None:
    assert assess_presence(analyse(question), passages(("Lockers are beside the lift.", NEAR))).is_present


def test_of_several_things_one_is_enough() -> None:
    asked = analyse("How much is a locker and who looks after the lockers?")
    assert assess_presence(asked, passages(("The lockers are looked after by Ann Lee.", NEAR))).is_present


def test_nothing_is_known_without_passages_or_vectors() -> None:
    asked = analyse("How much is a locker?")
    assert assess_presence(asked, []).is_present
    assert assess_presence(asked, passages(("Lockers are beside the lift.", 0.0))).is_present


def test_what_replaces_a_row_is_left_out() -> None:
    assert "B2" not in without_replacements("sku: A1; replaces: B2; price: 3")
    assert "price: 3" in without_replacements("sku: A1; replaced_by: B2; price: 3")


@pytest.mark.parametrize(
    ("question", "text", "is_there"),
    [
        ("Wie is de directeur?", "Vraag verlof aan bij de directeur, mevrouw Jansen.", True),
        ("Who is the head of research?", "Research is led by Anna Berg.", True),
        ("Who is the head of WebOps?", "Technical Architects, Heads of Profession and Developers are welcome.", False),
        ("Wanneer is de schoolreis?", "De bijdrage is er eens per jaar en betaalt de schoolreis.", False),
        ("When is the trip?", "The trip is on 12 May.", True),
        ("When may I visit?", "Children younger than twelve years come with an adult.", False),
        ("When is it paid?", "It is paid within 90 days.", True),
        ("When is it paid?", "It is paid three months after the first day.", True),
        # An occasion is no value that could be told from others.
        ("Wanneer moet ik bellen?", "Bel op 3 mei, of bij pijn die aanhoudt.", False),
        ("When should I call?", "Call on 3 May, or when the pain stays.", False),
        ("Wanneer wordt het betaald?", "Het wordt binnen twee weken betaald.", True),
    ],
)
def test_a_value_answers_only_what_is_asked(question: str, text: str, is_there: bool) -> None:
    assert bool(find_answer_values(analyse(question), text)) is is_there
