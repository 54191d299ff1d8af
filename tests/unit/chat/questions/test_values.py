"""The values that stand in a text."""

from __future__ import annotations

import pytest
from chat.questions.types import ValueKind as Kind
from chat.questions.values import find_values


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        (Kind.NUMBER, "It weighs 12.5 kg and holds six bottles.", ["12.5 kg", "six"]),
        (Kind.NUMBER, "Fault E-041 of the MX-9920 is harmless.", []),
        (Kind.AMOUNT, "A day ticket is €14.90, a season ticket 120 euros.", ["€14.90", "120 euros"]),
        (Kind.AMOUNT, "sku: A1; price_eur: 14.90; weight_g: 30", ["price_eur: 14.90"]),
        (Kind.AMOUNT, "It weighs 14 kg.", []),
        (Kind.DURATION, "The course takes 3 to 4 weeks, twice a year.", ["3 to 4 weeks", "twice a year"]),
        (Kind.DURATION, "Binnen twee werkdagen, en daarna wekelijks.", ["Binnen twee werkdagen", "wekelijks"]),
        (Kind.DATE, "From 3 March 2021, in the 16th century.", ["3 March 2021", "16th century"]),
        (Kind.DATE, "until 2023-05-01", ["2023-05-01"]),
        (Kind.DATE, "op 3 maart en op maandag", ["3 maart", "maandag"]),
        (Kind.TIME, "At half price; om half drie, kwart over vier, at two.", ["half drie", "kwart over", "at two"]),
        (Kind.TIME, "Open from 9 am until 17:30, om 9 uur en om 12.15 uur.", ["9 am", "17:30", "9 uur", "12.15 uur"]),
        (Kind.PERSON, "Write to Peter de Vries or your manager.", ["Peter de Vries", "manager"]),
        (Kind.PERSON, "Dr. Smith runs it; mr. Roos van Iersel helps.", ["Dr. Smith", "mr. Roos van Iersel"]),
        (Kind.PERSON, "Prof. dr. de Vries does.", ["Prof. dr. de Vries"]),
        (Kind.PERSON, "Opening hours are given below. Nothing else is.", []),
        (Kind.PLACE, "The kit hangs in the kitchen.", ["in the kitchen"]),
        (Kind.PLACE, "They left for good.", []),
        (Kind.CONTACT, "Call 0800 123 4567 or write to help@example.org.", ["0800 123 4567", "help@example.org"]),
        (Kind.CONTACT, "There are 40 boats.", []),
    ],
)  # fmt: skip
def test_values_of_a_kind_are_found(kind: Kind, text: str, values: list[str]) -> None:
    assert [text[start:end] for start, end in find_values(text, kind)] == values


@pytest.mark.parametrize("kind", list(Kind))
def test_values_do_not_overlap_and_nothing_is_found_in_nothing(kind: Kind) -> None:
    assert find_values("", kind) == []
    spans = find_values(
        "On 3 March 2021 at 14:30 Ann Lee paid €20 in Room 5 of the York Road office for 2 weeks." * 3, kind
    )
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
