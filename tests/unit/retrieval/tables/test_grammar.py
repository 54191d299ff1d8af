"""Questions and what is computed for them, over tables of several kinds; and questions that are not for a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from retrieval.tables.interpretation.grammar import interpret
from retrieval.tables.interpretation.links import KnownTable
from retrieval.tables.interpretation.operations import Interpretation

from tests.support.tables import known_table

STAFF = known_table(
    """employee_id,name,department,salary_usd,hire_date,remote,age
E001,Alice Johnson,Engineering,98000,2018-03-12,yes,34
E002,Bob Smith,Engineering,"121,500",2015-07-01,no,41
E003,Carla Gomez,Marketing,87000,2019-11-20,yes,38
E004,David Chen,Sales,72000,2020-01-15,no,29
E005,Emma Brown,Sales,64000,2017-05-30,no,45
E006,Farid Rahimi,Engineering,105000,2021-09-01,yes,31
""",
    "employees.csv",
)
PARTS = known_table(
    """sku,name,category,weight_g,price_eur,replaces
MX-9920-W,Wet-rotor pump 9920,pump,3450,418.50,MX-9910-W
MX-9940-W,Wet-rotor pump 9940,pump,5200,664.00,
SK-9940-D,Seal kit for MX-9940,seal kit,142,68.00,SK-9930-D
BV-1015,Ball valve DN 15,valve,210,12.40,
BV-1020,Ball valve DN 20,valve,300,15.10,
GV-2040,Gate valve DN 40,valve,2100,48.00,GV-2030
""",
    "catalogue.csv",
)
SALES = known_table(
    """region,manager,sales_2021,sales_2022,stores
North,Anna Berg,1200000,1350000,14
South,Paul Diaz,980000,1010000,11
East,Mei Lin,450000,610000,7
West,Tom Reed,2100000,1980000,22
Central,Zoe Marsh,760000,790000,9
""",
    "regions.csv",
)
TOWNS = known_table(
    """gemeente;provincie;inwoners;oppervlakte_km2;burgemeester;station
Utrecht;Utrecht;367.984;99,21;Sharon Dijksma;ja
Zeist;Utrecht;66.645;48,63;Joyce Langenacker;ja
Groningen;Groningen;243.833;197,96;Roelien Kamminga;ja
Eindhoven;Noord-Brabant;246.417;88,92;Jeroen Dijsselbloem;ja
Urk;Flevoland;21.919;13,38;Cees van den Bos;nee
""",
    "gemeenten.csv",
)


def describe(interpretation: Interpretation | None, table: KnownTable) -> str:
    """The interpretation in one line."""
    if interpretation is None:
        return "-"
    columns = table.columns
    parts = [interpretation.operation.value]
    parts += [f"[{'/'.join(entity.texts)}]" for entity in interpretation.entities]
    parts += [columns[target].name for target in interpretation.targets]
    parts += [
        f"{columns[condition.column].name} {condition.operator} {'/'.join(str(value) for value in condition.values)}"
        for condition in interpretation.conditions
    ]
    return " ".join(parts)


@pytest.mark.parametrize(
    ("question", "meaning"),
    [
        ("What is Bob Smith's salary?", "look_up [Bob Smith] salary_usd"),
        ("How old is Emma Brown?", "look_up [Emma Brown] age"),
        ("Does Farid Rahimi work remote?", "look_up [Farid Rahimi] remote"),
        ("How many employees are in the department Engineering?", "count department in Engineering"),
        ("Who works in Sales?", "list department in Sales"),
        ("Who was hired after 2019?", "list hire_date > 2019-12-31"),
        ("Who earns less than 80k?", "list salary_usd < 80000.0"),
        ("employees between 30 and 40 years old", "-"),
        ("Who is the oldest employee?", "most age"),
        ("highest salary in Engineering", "most salary_usd department in Engineering"),
        ("average salary of Sales", "mean salary_usd department in Sales"),
        ("What is the mean salary of Sales?", "mean salary_usd department in Sales"),
        ("What does salary mean?", "-"),
        ("Which employees do not work remote?", "list remote = False"),
        ("Who earns more, Alice Johnson or Carla Gomez?", "compare [Alice Johnson] [Carla Gomez] salary_usd"),
    ],
)
def test_questions_about_people(question: str, meaning: str) -> None:
    assert describe(interpret(question, STAFF), STAFF) == meaning


@pytest.mark.parametrize(
    ("question", "meaning"),
    [
        ("How heavy is the MX-9920-W?", "look_up [MX-9920-W] weight_g"),
        ("hwo havy is teh mx9920w", "look_up [MX-9920-W] weight_g"),
        ("How much does the MX 9940 W cost?", "look_up [MX-9940-W] price_eur"),
        ("Wat kost de BV-1020?", "look_up [BV-1020] price_eur"),
        ("What is the cheapest valve?", "least price_eur category in valve"),
        ("Which valves do you sell?", "list category in valve"),
        ("How many pumps are in the catalogue?", "count category in pump"),
        ("pumps under 9940 g", "list weight_g < 9940.0 category in pump"),
        ("parts heavier than 2 kg", "list weight_g > 2000.0"),
        ("Compare the weight of MX-9920-W and MX-9940-W", "compare [MX-9920-W] [MX-9940-W] weight_g"),
        ("Which part replaces GV-2030?", "list replaces in GV-2030"),
    ],
)
def test_questions_about_articles(question: str, meaning: str) -> None:
    assert describe(interpret(question, PARTS), PARTS) == meaning


@pytest.mark.parametrize(
    ("question", "meaning"),
    [
        ("sales of the North region in 2022", "look_up [North] sales_2022"),
        ("Which region had the highest sales in 2021?", "most sales_2021"),
        ("total sales in 2022", "sum sales_2022"),
        ("regions with more than 10 stores", "list stores > 10.0"),
        ("compare North and South in 2022 sales", "compare [North] [South] sales_2022"),
        ("What were the sales of East in 2020?", "-"),
    ],
)
def test_years_choose_columns(question: str, meaning: str) -> None:
    assert describe(interpret(question, SALES), SALES) == meaning


@pytest.mark.parametrize(
    ("question", "meaning"),
    [
        ("Hoeveel inwoners heeft Zeist?", "look_up [Zeist] inwoners"),
        ("Wie is de burgemeester van Urk?", "look_up [Urk] burgemeester"),
        ("Welke gemeente heeft de meeste inwoners?", "most inwoners"),
        ("Hoeveel gemeenten liggen in de provincie Utrecht?", "count provincie in Utrecht"),
        ("Welke gemeenten hebben geen station?", "list station = False"),
        ("gemeenten met meer dan 200.000 inwoners", "list inwoners > 200000.0"),
        (
            "Vergelijk het aantal inwoners van Eindhoven en Groningen",
            "compare [Eindhoven] [Groningen] inwoners",
        ),
    ],
)
def test_dutch_questions(question: str, meaning: str) -> None:
    assert describe(interpret(question, TOWNS), TOWNS) == meaning


@pytest.mark.parametrize(
    "question",
    [
        "What is Bob Smith's phone number?",
        "How many vacation days does Alice Johnson have?",
        "What is the maximum flow of the MX-9920-W in cubic metres per hour?",
        "How much is the SK-9930-D?",
        "What is the price of BV-1099?",
        "How do I return a pump?",
        "Can I use glycol with the MX-9920-W?",
        "What is the profit of the West region?",
        "Hoeveel scholen heeft Zeist?",
        "Why do people leave the company?",
        "Who painted the Mona Lisa?",
        "pump",
        "",
    ],
)
def test_what_no_table_answers_is_not_computed(question: str) -> None:
    assert [interpret(question, table) for table in (STAFF, PARTS, SALES, TOWNS)] == [None] * 4


def test_short_tables_are_looked_up_in_and_not_counted() -> None:
    table = known_table(
        "# Support\n\n## Response times\n\n| Priority | Response time |\n|---|---|\n"
        "| P1 | 20 minutes |\n| P2 | 60 minutes |\n| P3 | 2 hours |\n",
        "support.md",
    )
    assert describe(interpret("response time for a P2", table), table) == "look_up [P2] Response time"
    assert interpret("How many priorities are there?", table) is None


def test_words_that_mean_the_name_of_a_column_are_told_by_likeness() -> None:
    def likeness(words: str, names: Sequence[str]) -> list[float]:
        return [0.9 if words == "altitude" and name == "age" else 0.1 for name in names]

    assert interpret("altitude of Bob Smith", STAFF) is None
    assert describe(interpret("altitude of Bob Smith", STAFF, likeness), STAFF) == "look_up [Bob Smith] age"


PARKING = known_table(
    "# Bezoek\n\n## Parkeren\n\n| Voorziening | Plaatsen | Tarief | Maximum per dag |\n|---|---|---|---|\n"
    "| P1, garage | 420 | € 1,80 per uur | € 9,00 |\n| P2, terrein | 260 | € 1,20 per uur | € 6,00 |\n",
    "bezoek.md",
)


def test_a_short_table_is_shown_whole_to_who_names_its_heading_and_a_column() -> None:
    assert describe(interpret("Wat kost parkeren?", PARKING), PARKING) == "look_up Tarief Maximum per dag"
    assert interpret("Mag ik hier parkeren?", PARKING) is None
    assert interpret("How do I pay for parking?", PARKING) is None


@pytest.mark.parametrize(
    ("question", "meaning"),
    [
        ("How many employees in payroll 2021?", "count"),
        ("How many employees in payroll 2020?", "-"),
        (
            "How many employees in payroll 2021 were hired in 2020?",
            "count hire_date >= 2020-01-01 hire_date <= 2020-12-31",
        ),
    ],
)
def test_a_year_in_the_name_of_a_table_is_no_year_of_its_rows(question: str, meaning: str) -> None:
    payroll = replace(STAFF, caption="Payroll 2021")
    assert describe(interpret(question, payroll), payroll) == meaning
