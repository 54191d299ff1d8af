"""The units of the context: sentences, items, rows and code, each at its exact place."""

import pytest

from chat.answering.units import QuotableUnitKind, find_quotable_units
from tests.support.contexts import source

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


def test_units_are_exact_and_headings_are_none():
    units = find_quotable_units([source(MARKDOWN)])
    for unit in units:
        assert MARKDOWN[unit.start - 100 : unit.end - 100] == unit.text
    assert [(unit.kind, unit.text.split("\n")[0]) for unit in units] == [
        (QuotableUnitKind.SENTENCE, "The MX-9920-W is a wet-rotor pump."),
        (QuotableUnitKind.SENTENCE, "It weighs 3450 g."),
        (QuotableUnitKind.ROW, "| MX-9920-W | 10 |"),
        (QuotableUnitKind.ROW, "| MX-9902-W | 6 |"),
        (QuotableUnitKind.SENTENCE, "After a restore, run:"),
        (QuotableUnitKind.CODE, "```sh"),
        (QuotableUnitKind.ITEM, "- first item here"),
        (QuotableUnitKind.ITEM, "- second item there"),
    ]
    assert {unit.heading for unit in units[:2]} == {"Pumps"}
    assert {unit.heading for unit in units[2:]} == {"Limits"}
    assert units[2].table_head == "| Pump | Bar |\n|---|---|"


def test_records_of_a_table_are_units():
    content = "sku: A-100; name: Valve; bar: 6\nsku: A-200; name: Pump. Small; bar: 9\n"
    assert [unit.text for unit in find_quotable_units([source(content)])] == content.strip().split("\n")


def test_headings_of_plain_text_are_known_from_the_passage():
    content = "7.3 Limits of pressure\nThe maximum is 10 bar."
    (unit,) = find_quotable_units([source(content, headings=("7.3 Limits of pressure",))])
    assert (unit.text, unit.heading) == ("The maximum is 10 bar.", "7.3 Limits of pressure")


def test_the_question_of_an_faq_is_the_heading_of_its_answer():
    content = "## Visits\n\n**May I bring a dog?**\n\nDogs stay outside.\n"
    (unit,) = find_quotable_units([source(content)])
    assert (unit.text, unit.heading) == ("Dogs stay outside.", "May I bring a dog?")


def test_rows_of_a_table_of_html_have_a_head_in_markdown():
    table = "<table>\n<tr><td>Grade</td><td>Pay</td></tr>\n<tr><td>Junior</td><td>$70k</td></tr>\n</table>\n"
    (unit,) = find_quotable_units([source(table)])
    assert unit.table_head == "| Grade | Pay |\n|---|---|"
    assert "Junior" in unit.text
    assert "Grade" not in unit.text


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("## `DB_NAME` {: #DB_NAME }", "DB_NAME"),
        ("## Setting up {#setup}", "Setting up"),
        ("## [Install](install.md) ##", "Install"),
        ("## *Very* **important**", "Very important"),
        ("## Use of `a * b`", "Use of a * b"),
    ],
)
def test_headings_are_words_without_markup(line, heading):
    (unit,) = find_quotable_units([source(f"{line}\n\nThe name of the database.\n")])
    assert unit.heading == heading
