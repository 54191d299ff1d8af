"""Questions and their computations, over tables of several kinds; and questions without a computation."""

import pytest

from retrieval.tables.computing import compute_table_result
from retrieval.tables.grammar import interpret_question
from retrieval.tables.matching_rows import interpret_row_selection
from retrieval.tables.results import TableOperation
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


FILMS = known_table(
    """Year,Title,Language,Role,Country
2001,Dawn,"Dutch, French",Anna,"Ghent, Belgium"
2002,Noon,Dutch,Bea,"Utrecht, Netherlands"
2002,Dusk,French,Anna,"Lyon, France"
2004,Night,"German, Dutch",Carla,"Cologne, Germany"
2005,Rain,English,Anna,"Leeds, United Kingdom"
2006,Snow,Dubbed Dutch,Dora,"Ghent, Belgium"
""",
    "t1.csv",
)
MEDALS = known_table(
    """Rank,Nation,Gold,Silver,Bronze,Total
1,Venezuela,9,8,6,23
2,Guatemala,6,6,6,18
3,Peru,5,8,9,22
4,Chile,4,4,,8
5,Colombia,0,4,9,13
Total,Total,24,30,30,84
""",
    "t2.csv",
)


def ask(question, table):
    """Return the computation in one line: the operation and its answer; a dash if there is none."""
    reading = interpret_question(question, table)
    computed = compute_table_result(reading, table) if reading is not None else None
    if computed is None:
        return "-"
    if computed.value:
        return f"{computed.operation} {computed.value}"
    column = computed.answer if computed.answer is not None else table.subject_column or 0
    answering = computed.rows[:1] if computed.operation is TableOperation.COMPARE else computed.rows
    return f"{computed.operation} {', '.join(str(row.values[column]) for row in answering)}"


def rows(question, table):
    """Return the names of the first rows that the question chooses."""
    reading = interpret_row_selection(question, table, min)
    computed = compute_table_result(reading, table) if reading is not None else None
    return [str(row.values[table.subject_column or 0]) for row in computed.rows[:3]] if computed is not None else []


@pytest.mark.parametrize(
    ("question", "table", "condition"),
    [
        ("How many pumps are heavier than 2 kg?", PARTS, "weight_g > 2000"),
        ("How many pumps are heavier than 2kg?", PARTS, "weight_g > 2000"),
        ("How many pumps weigh between 2 kilos and 6 kilos?", PARTS, "weight_g between 2000 6000"),
        ("Which products weigh less than 10 ounces?", PARTS, "weight_g < 283.495"),
        ("Welke artikelen wegen meer dan 0,25 kilo?", PARTS, "weight_g > 250"),
        ("gemeenten met een oppervlakte boven 100 km2", TOWNS, "oppervlakte_km2 > 100"),
        # The unit alone means the column.
        ("How many products are over 4 kg?", PARTS, "weight_g > 4000"),
        ("products below 50 euros", PARTS, "price_eur < 50"),
        ("How many employees are there above $ 100000?", STAFF, "salary_usd > 100000"),
        # Euros are no dollars, and kilograms no euros.
        ("Which products cost less than 100 dollars?", PARTS, ""),
        ("Which products cost less than 2 kg?", PARTS, ""),
        ("Who earns more than 90000 euros?", STAFF, ""),
        ("products under 2 litres", PARTS, ""),
    ],
)
def test_a_number_is_compared_in_the_unit_of_its_column(question, table, condition):
    chosen = interpret_row_selection(question, table, min)
    conditions = [each for each in (chosen.conditions if chosen is not None else ()) if each.operator != "is"]
    read = interpret_question(question, table)
    if read is not None:
        assert [each for each in read.conditions if each.operator != "is"] == conditions
    described = [f"{table.columns[each.column].name} {each.operator}" for each in conditions]
    values = [f"{value:.6g}" for each in conditions for value in each.values]
    assert " ".join([*described, *values]) == condition


def test_a_unit_of_two_columns_means_neither():
    pieces = known_table("piece,width_mm,height_mm\nA,20,30\nB,40,10\nC,50,60\nD,5,5\nE,70,1\n", "pieces.csv")
    assert interpret_question("How many pieces are over 2 cm?", pieces) is None
    assert ask("How many pieces have a width over 2 cm?", pieces) == "count 3"


@pytest.mark.parametrize(
    ("question", "table", "chosen"),
    [
        ("Which people joined Sales last spring?", STAFF, ["David Chen", "Emma Brown"]),
        ("Is the pay better for Alice Johnson or Bob Smith?", STAFF, ["Alice Johnson", "Bob Smith"]),
        ("staff above 40 years of age, please", STAFF, ["Bob Smith", "Emma Brown"]),
        ("whose pay is above 100000 salary before tax", STAFF, ["Bob Smith", "Farid Rahimi"]),
        ("lowest weight of what is sold in Delft", PARTS, ["SK-9940-D", "BV-1015", "BV-1020"]),
        ("anybody working outside of Sales, not in Sales", STAFF, []),
        ("How long does a pump live?", PARTS, ["MX-9920-W", "MX-9940-W"]),
        ("Welke dorpen in Utrecht hebben een zwembad?", TOWNS, ["Utrecht"]),
        ("What does the moon weigh?", STAFF, []),
    ],
)
def test_rows_are_chosen_by_what_a_question_names(question, table, chosen):
    """If words are left over, no value is computed; only the rows that the other words name are shown."""
    assert interpret_question(question, table) is None
    assert rows(question, table) == chosen


def test_a_column_that_begins_with_a_word_is_shown():
    sweets = known_table("name,pricepercent,sugarpercent\nNerds,.3,.8\nSkittles,.2,.9\nRunts,.2,.8\n", "sweets.csv")
    assert interpret_row_selection("Which has more sugar, Skittles or Nerds?", sweets, min).shown == (2,)


@pytest.mark.parametrize(
    ("table", "question", "said"),
    [
        (STAFF, "What is Bob Smith's salary?", "look_up 121500.0"),
        (STAFF, "How old is Emma Brown?", "look_up 45.0"),
        (STAFF, "How many employees are in the department Engineering?", "count 3"),
        (STAFF, "Who is the oldest employee?", "most Emma Brown"),
        (STAFF, "What is the highest age?", "most 45.0"),
        (STAFF, "highest salary in Engineering", "most Bob Smith"),
        (STAFF, "What is the mean salary of Sales?", "mean 68000"),
        (STAFF, "Who earns less, Alice Johnson or Carla Gomez?", "compare Carla Gomez"),
        (STAFF, "Compare the age of Alice Johnson and Bob Smith", "compare Bob Smith"),
        (STAFF, "Who earns less than 80k?", "rows David Chen, Emma Brown"),
        (STAFF, "What does salary mean?", "-"),
        (STAFF, "Is Bob Smith the oldest employee?", "-"),
        (PARTS, "weight of the mx9920w", "look_up 3450.0"),
        (PARTS, "How much does the MX 9940 W cost?", "look_up 664.0"),
        (PARTS, "Wat kost de BV-1020?", "look_up 15.1"),
        (PARTS, "What is the cheapest valve?", "least BV-1015"),
        (PARTS, "How many pumps are there?", "count 2"),
        (PARTS, "How many products are valves?", "count 3"),
        (PARTS, "How many products are there?", "-"),
        (PARTS, "What is the cheapest product?", "least BV-1015"),
        (PARTS, "How many valves have a price between 10 and 20?", "count 2"),
        (PARTS, "How many valves are cheaper than 15?", "count 1"),
        (PARTS, "Which pumps are heavier than 4000?", "rows MX-9940-W"),
        (PARTS, "weight and price of the BV-1015", "look_up 210.0"),
        # Two cells from each of several rows are no answer.
        (PARTS, "weight and price of the valves", "rows BV-1015, BV-1020, GV-2040"),
        (PARTS, "the most expensive valve", "most GV-2040"),
        (SALES, "sales of the North region in 2022", "-"),
        (SALES, "total sales in 2022", "sum 5740000"),
        (SALES, "regions with more than 10 stores", "list North, South, West"),
        (SALES, "compare North and South in 2022 sales", "compare North"),
        (SALES, "What were the sales of East?", "-"),
        (TOWNS, "Hoeveel inwoners heeft Zeist?", "look_up 66645.0"),
        (TOWNS, "Wie is de burgemeester van Urk?", "look_up Cees van den Bos"),
        (TOWNS, "Welke gemeente heeft de meeste inwoners?", "most Utrecht"),
        (TOWNS, "Hoeveel gemeenten liggen in de provincie Utrecht?", "count 2"),
        (TOWNS, "Welke gemeenten hebben geen station?", "look_up Urk"),
        (TOWNS, "gemeenten met meer dan 200.000 inwoners", "list Utrecht, Groningen, Eindhoven"),
        (TOWNS, "Vergelijk het aantal inwoners van Eindhoven en Zeist", "compare Eindhoven"),
        # A cell with a list has each of its values.
        (FILMS, "How many titles have the language French?", "count 2"),
        (FILMS, "Which title has the languages Dutch and French?", "look_up Dawn"),
        (FILMS, "Which titles are from Belgium?", "list Dawn, Snow"),
        # No cell has both.
        (FILMS, "How many titles have the languages English and French?", "-"),
        (FILMS, "How many titles were in 2002?", "count 2"),
        (FILMS, "Which title was in 2004?", "look_up Night"),
        (FILMS, "How many titles after 2002?", "count 3"),
        (FILMS, "How many titles are there between 2003 and 2007?", "count 3"),
        # A period is read only with "between".
        (FILMS, "How many titles from 2002 to 2005?", "-"),
        # Anna is a role three times: the one that is counted must be said.
        (FILMS, "How many roles are there?", "rows Dawn, Noon, Dusk, Night, Rain, Snow"),
        (FILMS, "How many different roles are there?", "count 4"),
        (FILMS, "How many times is Anna the role?", "count 3"),
        # A verb says no more than "has"; rows of totals do not count.
        (MEDALS, "Who won the most gold medals?", "most Venezuela"),
        (MEDALS, "Which nation besides Venezuela has the most gold?", "most Guatemala"),
        (MEDALS, "Which country won no gold?", "look_up Colombia"),
        (MEDALS, "Which nations other than Peru have at least 8 silver medals?", "look_up Venezuela"),
        (MEDALS, "Which other nation has 9 bronze?", "-"),
        (MEDALS, "How many nations are listed?", "count 5"),
        (MEDALS, "total number of gold medals", "sum 24"),
        (MEDALS, "Who has the least total?", "least Chile"),
        # Two have as many.
        (MEDALS, "Which nation has the most silver?", "-"),
        # The order of the rows is not read.
        (MEDALS, "Which nation is listed after Peru?", "-"),
        # No nation reaches the number: perhaps they are counted otherwise.
        (MEDALS, "How many nations have at least 400 silver?", "-"),
        (MEDALS, "What is the highest rank?", "-"),
        (MEDALS, "What is the total of the ranks?", "-"),
    ],
)
def test_what_is_computed(table, question, said):
    assert ask(question, table) == said


@pytest.mark.parametrize(
    "question",
    [
        "What is Bob Smith's phone number?",
        "How many vacation days does Alice Johnson have?",
        "What is the maximum flow of the MX-9920-W in cubic metres per hour?",
        "How much is the SK-9930-D?",
        "What is the price of BV-1099?",
        "Can I use glycol with the MX-9920-W?",
        "When should I replace the seal?",
        "Hoeveel scholen heeft Zeist?",
        "",
    ],
)
def test_what_no_table_answers_is_not_computed(question):
    assert [ask(question, table) for table in (STAFF, PARTS, SALES, TOWNS)] == ["-"] * 4


def test_the_only_measure_of_a_table_is_what_an_extreme_is_of():
    peaks = "peak,country,metres\nOne,Andorra,100\nTwo,Andorra,300\nThree,Belgium,200\nFour,Belgium,50\nFive,Chad,70\n"
    assert ask("Which peak is the highest?", known_table(peaks, "peaks.csv")) == "most Two"
    assert ask("Which peak is the lowest in Andorra?", known_table(peaks, "peaks.csv")) == "least One"
    two = peaks.replace("metres", "metres,snow").replace("00\n", "00,1\n").replace("50\n", "50,9\n")
    assert ask("Which peak is the highest?", known_table(two.replace("70\n", "70,3\n"), "peaks.csv")) == "-"


def test_short_tables_are_looked_up_in_and_not_counted():
    table = known_table(
        "# Support\n\n## Response times\n\n| Priority | Response time |\n|---|---|\n"
        "| P1 | 20 minutes |\n| P2 | 60 minutes |\n| P3 | 2 hours |\n",
        "support.md",
    )
    assert ask("response time for a P2", table) == "look_up 60 minutes"
    assert ask("How many priorities are there?", table) == "-"


def test_a_row_of_totals_is_neither_ranked_nor_counted():
    rows = "Anna,x,5\nBea,y,6\nCarl,x,9\nDora,z,2\nTotal valid votes,,999\n"
    table = known_table(f"candidate,party,votes\n{rows}", "t6.csv")
    assert ask("Who has the most votes?", table) == "most Carl"
    assert ask("How many candidates are listed?", table) == "count 4"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which nation has the most silver?", "most C"),
        ("Which nation has the least silver?", "-"),
        ("How many nations have less than 3 silver?", "-"),
        ("How many nations have at least 3 silver?", "count 3"),
    ],
)
def test_an_empty_number_may_be_zero(question, said):
    assert ask(question, known_table("nation,silver\nA,5\nB,4\nC,6\nD,\nE,1\n", "t8.csv")) == said


def test_a_table_without_names_of_columns_is_not_asked():
    table = known_table("1,Anna,2\n2,Bob,3\n3,Carl,4\n4,Dora,5\n5,Emma,6\n", "t5.csv")
    assert table.columns[0].name == "column 1"
    assert ask("How many times is Anna listed?", table) == "-"


def test_cells_that_list_are_not_counted_as_one_each():
    table = known_table('town,highway\nA,"ND 18, ND 19"\nB,PR 1\nC,PR 2\nD,PR 3\nE,PR 4\n', "t10.csv")
    assert ask("How many highways are there?", table).startswith("rows")
    assert ask("How many towns are there?", table) == "count 5"
