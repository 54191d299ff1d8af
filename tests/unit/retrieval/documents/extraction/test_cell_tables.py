"""The names of columns in delimited text and on sheets: their rows, and the lines around them."""

import io

import openpyxl
import pytest

from retrieval.documents.extraction import extract
from retrieval.tables.table_reading import read_tables

TABLES = [
    # Years, dates and numbers that count up are names; years below a name are values.
    ("Region,2022,2023\nNorth,100,110\nSouth,90,95",
     "Region: North; 2022: 100; 2023: 110\nRegion: South; 2022: 90; 2023: 95"),
    (",2022,2023\nNorth,100,110", "column 1: North; 2022: 100; 2023: 110"),
    ("Plant,2025-01-31,2025-02-28\nA,5,6", "Plant: A; 2025-01-31: 5; 2025-02-28: 6"),
    ("Month,Jan 26,Feb 26\nRain,10,20", "Month: Rain; Jan 26: 10; Feb 26: 20"),
    # A row of units.
    ("Code,Name,Price\n(no.),(text),(EUR)\nA1,Bolt,2", "Code (no.): A1; Name (text): Bolt; Price (EUR): 2"),
    ("Plant,2023/24,2024/25\nA,5,6", "Plant: A; 2023/24: 5; 2024/25: 6"),
    ("Shift,1,2,3\nEarly,8,9,7", "Shift: Early; 1: 8; 2: 9; 3: 7"),
    ("Alpha,2019,2021\nBeta,2020,2022\nGamma,2018,2023", "column 1: Alpha; column 2: 2019; column 3: 2021\n"
     "column 1: Beta; column 2: 2020; column 3: 2022\ncolumn 1: Gamma; column 2: 2018; column 3: 2023"),
    ("2022,2023,2024\n100,110,120\n90,95,99", "2022: 100; 2023: 110; 2024: 120\n2022: 90; 2023: 95; 2024: 99"),
    ("Team,Start,End\nA,2019,2021\nB,2018,2022", "Team: A; Start: 2019; End: 2021\nTeam: B; Start: 2018; End: 2022"),
    # A text that is a value in the body of a table may be a name above it.
    ("No,Name,City\n1,Ann,Gent\n2,Bob,Aalst", "No: 1; Name: Ann; City: Gent\nNo: 2; Name: Bob; City: Aalst"),
    ("#,Yes,No,-\nA,1,2,3\nB,3,4,5", "#: A; Yes: 1; No: 2; -: 3\n#: B; Yes: 3; No: 4; -: 5"),
    # Names that are the same or empty, empty columns, and a delimiter at the end of each line.
    ("Name,Note,Note\nA,x,y", "Name: A; Note: x; Note (2): y"),
    ("Name,,Phone\nA,x,5510", "Name: A; column 2: x; Phone: 5510"),
    ("Name,,Status,\nDesign,Anouk,Done,x\nTest,Bram,Open,y",
     "Name: Design; column 2: Anouk; Status: Done; column 4: x\nName: Test; column 2: Bram; Status: Open; column 4: y"),
    ("Name,Phone,\nA,5510,\nB,5511,", "Name: A; Phone: 5510\nName: B; Phone: 5511"),
    (",Name,,Phone\n,A,,5510", "Name: A; Phone: 5510"),
    # Lines of a report above and below.
    ("Open orders\n2026-02-01\nOrder,Customer,Amount\n9001,Brouwer,125.50",
     "Open orders\n\n## 2026-02-01\n\nOrder: 9001; Customer: Brouwer; Amount: 125.50"),
    ("Report,Open orders\nDate,2026-02-01\n\nOrder,Customer,Amount\n9001,Brouwer,125.50\n9002,Kuiper,80\n9003,Smit,1",
     "Report Open orders\n\n## Date 2026-02-01\n\nOrder: 9001; Customer: Brouwer; Amount: 125.50\n"
     "Order: 9002; Customer: Kuiper; Amount: 80\nOrder: 9003; Customer: Smit; Amount: 1"),
    ("Item,Place,Count\nA,x,1\nB,y,2\nTotal,,3\nEnd of report",
     "Item: A; Place: x; Count: 1\nItem: B; Place: y; Count: 2\n\nTotal · Count 3\n\nEnd of report"),
    # Names in several rows.
    ("Region,2024,,2025,\n,H1,H2,H1,H2\nNorth,1,2,3,4",
     "Region: North; 2024 H1: 1; 2024 H2: 2; 2025 H1: 3; 2025 H2: 4"),
    (",Costs,,Income,\nRegion,Plan,Real,Plan,Real\nNorth,1,2,3,4",
     "Region: North; Costs Plan: 1; Costs Real: 2; Income Plan: 3; Income Real: 4"),
    ("Cost,,Gain,\nPlan,Real,Plan,Real\n1,2,3,4\n5,6,7,8",
     "Cost Plan: 1; Cost Real: 2; Gain Plan: 3; Gain Real: 4\nCost Plan: 5; Cost Real: 6; Gain Plan: 7; Gain Real: 8"),
    ("Part,Weight,Price\n,kg,EUR\nA-1,2.5,10\nA-2,3.5,12",
     "Part: A-1; Weight kg: 2.5; Price EUR: 10\nPart: A-2; Weight kg: 3.5; Price EUR: 12"),
    # Rows of text are rows, whatever is missing.
    ("Task,Owner,Status\nDesign,Anouk,\nTesting,,Open", "Task: Design; Owner: Anouk\nTask: Testing; Status: Open"),
    # No names are made up for labels and questions.
    ("1001,Chair,oak\n1002,Table,beech", "column 1: 1001; column 2: Chair; column 3: oak\n"
     "column 1: 1002; column 2: Table; column 3: beech"),
    ("How do I reset my badge?,Go to the desk.\nWhere is the gym?,Floor 2.",
     "### How do I reset my badge?\n\nGo to the desk.\n\n### Where is the gym?\n\nFloor 2."),
    ("Opening hours,We are open from nine to five.\nParking,Behind the hall.",
     "Opening hours: We are open from nine to five.\n\nParking: Behind the hall."),
    ("Mon,9-5\nTue,9-5", "Mon: 9-5\n\nTue: 9-5"),
    ("Chair,12\nTable,30", "Chair: 12\n\nTable: 30"),
    ("Question,Answer\nWhere is the gym?,Floor 2.", "Question: Where is the gym?; Answer: Floor 2."),
    ("Time,Are you well?\n9:00,yes\n9:05,no", "Time: 9:00; Are you well?: yes\nTime: 9:05; Are you well?: no"),
    ("Name\nAlma\nBert", "Name\n\nAlma\n\nBert"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "text"), TABLES)
def test_columns_are_named_in_delimited_text_and_on_sheets(source, text):
    assert extract(source.encode(), "a.csv").text.strip() == text
    workbook, out = openpyxl.Workbook(), io.BytesIO()
    for line in source.replace("\n\n", "\n").split("\n"):
        workbook.active.append(
            [float(cell) if cell.replace(".", "").isdigit() else cell or None for cell in line.split(",")]
        )
    workbook.save(out)
    on_sheet = extract(out.getvalue(), "a.xlsx").text.strip()
    assert on_sheet.replace("## ", "") == text.replace("125.50", "125.5").replace("## ", "")


def test_each_row_of_questions_is_a_section_and_a_year_is_a_column_of_numbers():
    assert [section.title for section in extract(b"May I?,Yes.\nWhy?,Ask.", "a.csv").sections] == ["May I?", "Why?"]
    (table,) = read_tables(extract(b"Region,2022,2023\nNorth,100,110\n", "a.csv"))
    assert [(column.name, column.kind) for column in table.columns] == [
        ("Region", "text"), ("2022", "number"), ("2023", "number"),
    ]  # fmt: skip
