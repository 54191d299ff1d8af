"""XLSX, XLS and ODS: tables anywhere on a sheet, with the values that a reader sees."""

import datetime as dt
import io
import struct
import zipfile

import openpyxl
import openpyxl.chart
import openpyxl.comments
import pytest
import xlwt
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from retrieval.documents.extraction import extract
from retrieval.documents.extraction.cell_tables import Cell
from retrieval.documents.extraction.sheets import Sheet, write_sheets
from retrieval.exceptions import DocumentRejected
from retrieval.models.left_out import explain_left_out_parts
from retrieval.tables.table_reading import read_tables
from retrieval.text.chunking import split_into_chunks
from retrieval.text.extracted import ExtractionLimits

PRICES = """# Prices

Valid in 2026

## Pump list

Article: MX-1; Category: Pumps; Weight (kg): 12.345; Price: € 1250.00; In stock: 2026-01-03; Margin: 21%
Article: MX-2; Category: Pumps; Weight (kg): 2,5 kg; Price: € 990.50; In stock: 2025-05-01; Margin: 5%

Total · Price € 2240.50

# Quarters

Region: North; 2024 H1: 1; 2024 H2: 2; 2025 H1: 3; 2025 H2: 4
"""
ODS_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
)


def saved(workbook):
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


def prices():
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Prices"
    sheet["A1"], sheet["A2"] = "Valid in 2026", "Pump list"
    sheet.merge_cells("A1:F1")
    sheet.append(["Article", "Category", "Weight (kg)", "Price", "In stock", "Margin"])
    sheet.append(["MX-1", "Pumps", 12.345, 1250, dt.date(2026, 1, 3), 0.21])
    sheet.append(["MX-2", None, "2,5 kg", 990.5, dt.datetime(2025, 5, 1), 0.05])
    sheet.append(["Total", None, None, 2240.5])
    sheet.merge_cells("B4:B5")
    for row in (4, 5, 6):
        sheet.cell(row, 4).number_format = "[$€-413] #,##0.00"
        sheet.cell(row, 6).number_format = "0%"
    quarters = workbook.create_sheet("Quarters")
    quarters.append(["Region", "2024", None, "2025"])
    quarters.append([None, "H1", "H2", "H1", "H2"])
    quarters.append(["North", 1, 2, 3, 4])
    quarters.merge_cells("B1:C1")
    quarters.merge_cells("D1:E1")
    return workbook


def test_a_workbook_is_read_as_the_tables_of_its_sheets():
    extracted = extract(saved(prices()), "prices.xlsx")
    assert extracted.text == PRICES
    assert [section.title for section in extracted.sections] == ["Prices", "Pump list", "Quarters"]
    assert extracted.left_out == ()
    table, quarters = read_tables(extracted)
    assert table.caption == "Prices › Pump list"
    assert [(column.kind, column.unit) for column in table.columns[2:]] == [
        ("text", ""), ("number", "eur"), ("date", ""), ("number", "%"),
    ]  # fmt: skip
    # The point of 12.345 is a decimal one, whatever a comma in another cell means; and the total is no row.
    assert [row.values[3:] for row in table.rows] == [(1250.0, "2026-01-03", 21.0), (990.5, "2025-05-01", 5.0)]
    assert [extracted.text[start:end] for start, end in table.rows[1].cells][:2] == ["MX-2", "Pumps"]
    assert [column.name for column in quarters.columns] == ["Region", "2024 H1", "2024 H2", "2025 H1", "2025 H2"]


def as_old_workbook(workbook):
    """Return the same cells, number formats, merged areas and hidden sheets as Excel 2003 saved them."""
    old, out = xlwt.Workbook(), io.BytesIO()
    for sheet in workbook.worksheets:
        copy = old.add_sheet(sheet.title)
        copy.visibility = 1 if sheet.sheet_state == "hidden" else 0
        for (row, column), cell in sheet._cells.items():
            if cell.value is not None:
                value = cell.value / dt.timedelta(days=1) if isinstance(cell.value, dt.timedelta) else cell.value
                copy.write(row - 1, column - 1, value, xlwt.easyxf(num_format_str=cell.number_format))
        for each in sheet.merged_cells.ranges:
            copy.merge(each.min_row - 1, each.max_row - 1, each.min_col - 1, each.max_col - 1)
    old.save(out)
    return out.getvalue()


def test_an_old_workbook_is_read_like_a_new_one():
    workbook = prices()
    workbook.create_sheet("Salaries").append(["secret"])
    workbook["Salaries"].sheet_state = "hidden"
    extracted = extract(as_old_workbook(workbook), "prices.xls")
    assert extracted.text == PRICES
    assert [each.names for each in extracted.left_out] == [("Salaries",)]


def test_times_and_truth_of_an_old_workbook():
    workbook = openpyxl.Workbook()
    workbook.active.append(["what", "value"])
    for value in (True, dt.datetime(2026, 1, 3, 9, 30), dt.time(7, 15), dt.timedelta(hours=30), 2.5):
        workbook.active.append(["x", value])
    assert extract(as_old_workbook(workbook), "a.xls").text == extract(saved(workbook), "a.xlsx").text


def test_rows_are_cited_by_their_sheet_however_small_it_is():
    chunks = split_into_chunks(
        extract(saved(prices()), "prices.xlsx"), lambda texts: [len(text) // 4 for text in texts], 300
    )
    assert [each.heading_path for each in chunks] == [("Prices",), ("Prices", "Pump list"), ("Quarters",)]


def test_what_is_hidden_and_what_was_never_computed_is_said():
    workbook = prices()
    workbook.create_sheet("Salaries").append(["secret"])
    workbook["Salaries"].sheet_state = "hidden"
    workbook["Prices"]["D6"] = "=SUM(D4:D5)"
    extracted = extract(saved(workbook), "prices.xlsx")
    assert "secret" not in extracted.text
    assert explain_left_out_parts((each.kind, list(each.names), each.count) for each in extracted.left_out) == (
        "Not read: 1 hidden sheet (Salaries), 1 formula without a stored value. "
        "Open the file in its program, save it and upload it: then the values are in it."
    )


def sheet(*rows):
    """Return a sheet whose cells are separated by bars; cells of digits are values."""
    cells = {
        number: {at: Cell(words, words.isdigit()) for at, words in enumerate(row.split("|")) if words}
        for number, row in enumerate(rows)
    }
    return write_sheets([Sheet("Sheet1", {n: c for n, c in cells.items() if c})], "a", "A", ExtractionLimits())


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        # Two tables beside each other, and one below them.
        (["a|b||c|d", "1|2||3|4", "", "e|f", "5|6"], "a: 1; b: 2\n\nc: 3; d: 4\n\ne: 5; f: 6\n"),
        # An empty row inside of a table.
        (["name|kg", "x|1", "", "y|2", "z|3"], "name: x; kg: 1\nname: y; kg: 2\nname: z; kg: 3\n"),
        # A table below another one, whose first column has no name.
        (["|a|b", "x|1|2", "", "|c|d", "y|3|4"], "column 1: x; a: 1; b: 2\n\ncolumn 1: y; c: 3; d: 4\n"),
        # Words above a table, with an empty row between.
        (["Stock", "", "name|kg", "x|1"], "## Stock\n\nname: x; kg: 1\n"),
        # A form, and notes.
        (["Name:|Ann", "Phone:|555", "", "Call before noon"], "Name: Ann\n\nPhone: 555\n\nCall before noon\n"),
        # The sheets have no names of columns, and two equal names.
        (["1|2", "3|4"], "column 1: 1; column 2: 2\ncolumn 1: 3; column 2: 4\n"),
        (["name|kg|kg", "x|1|2"], "name: x; kg: 1; kg (2): 2\n"),
    ],
)
def test_tables_are_told_from_what_stands_around_them(rows, text):
    assert sheet(*rows).text == text


def ods(rows, *, more=""):
    return (
        f'<office:document-content {ODS_NAMES}><office:automatic-styles><style:style style:name="h" '
        'style:family="table"><style:table-properties table:display="false"/></style:style></office:automatic-styles>'
        f'<office:body><office:spreadsheet><table:table table:name="Stock">{rows}</table:table>{more}'
        "</office:spreadsheet></office:body></office:document-content>"
    )


def cell(words, attributes=""):
    return f"<table:table-cell {attributes}><text:p>{words}</text:p></table:table-cell>"


def row(*cells):
    return f"<table:table-row>{''.join(cells)}</table:table-row>"


def test_an_opendocument_sheet_is_read_by_its_values(make_zip):
    money = 'office:value-type="currency" office:currency="EUR" office:value="1234.5"'
    rows = (
        row(cell("Name"), cell("Price"), cell("Since"))
        + row(
            cell("Pump"),
            cell("1.234,50 €", money),
            cell("3-1-26", 'office:value-type="date" office:date-value="2026-01-03"'),
        )
        + '<table:table-row table:number-rows-repeated="1048570"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row>'
    )
    hidden = f'<table:table table:name="Old" table:style-name="h">{row(cell("secret"))}</table:table>'
    files = {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}
    extracted = extract(make_zip(files | {"content.xml": ods(rows, more=hidden).encode()}), "stock.ods")
    assert extracted.text == "# Stock\n\nName: Pump; Price: 1234.50 €; Since: 2026-01-03\n"
    assert (
        explain_left_out_parts((each.kind, list(each.names), each.count) for each in extracted.left_out)
        == "Not read: 1 hidden sheet (Old)."
    )
    repeated = row(cell("x", 'table:number-columns-repeated="99999999"'))
    with pytest.raises(DocumentRejected, match="holds more than 1,000,000 cells"):
        extract(make_zip(files | {"content.xml": ods(repeated).encode()}), "stock.ods")
    manifest = {"META-INF/manifest.xml": b"<manifest><encryption-data/></manifest>"}
    with pytest.raises(DocumentRejected, match="stock.ods is password-protected"):
        extract(make_zip(files | manifest | {"content.xml": b"\x9d\x01"}), "stock.ods")


def value(shown, number, kind="float"):
    return cell(shown, f'office:value-type="{kind}" office:value="{number}"')


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (value("00123", 123), "00123"),
        (value("ACC-007001", 7001), "ACC-007001"),
        (value("1.250,50", 1250.5), "1250.50"),
        (value("1,250.50", 1250.5), "1250.50"),
        (value("1.234", 1234), "1234"),
        (value("1.234", 1.234), "1.234"),
        (value("1 250 stuks", 1250), "1250 stuks"),
        (value("(1.250,50)", -1250.5), "-1250.50"),
        (value("-3,5", -3.5), "-3.5"),
        (value("12,5 %", 0.125, "percentage"), "12.5 %"),
        (value("1.250k", 1250000), "1250k"),
        (value("3,14", 3.14159), "3.14"),
        (value("3/4", 0.75), "3/4"),
        (value("1,50E+04", 15000), "1,50E+04"),
        (value("-", 0), "0"),
        (value("", 0.25, "percentage"), "25%"),
        (value("", 7.5), "7.5"),
        (cell("3-1-26", 'office:value-type="date" office:date-value="2026-01-03"'), "2026-01-03"),
        (
            cell("3 jan 2026 09:30", 'office:value-type="date" office:date-value="2026-01-03T09:30:00"'),
            "2026-01-03 09:30",
        ),
        (cell("januari 2026", 'office:value-type="date" office:date-value="2026-01-01"'), "januari 2026"),
        (cell("", 'office:value-type="date" office:date-value="2026-01-03T09:30:00"'), "2026-01-03 09:30"),
        (cell("WAAR", 'office:value-type="boolean" office:boolean-value="true"'), "WAAR"),
        (cell("", 'office:value-type="string" office:string-value="pump"'), "pump"),
    ],
)  # fmt: skip
def test_a_cell_of_an_opendocument_sheet_is_what_the_program_showed(make_zip, element, words):
    files = {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}
    content = ods(row(cell("Name"), cell("Value")) + row(cell("x"), element))
    assert (
        extract(make_zip(files | {"content.xml": content.encode()}), "a.ods").text
        == f"# Stock\n\nName: x; Value: {words}\n"
    )


def test_notes_shapes_charts_and_hidden_parts_of_an_opendocument_sheet(make_zip):
    collapsed = 'table:visibility="collapse"'
    hidden = row(cell("never")).replace("<table:table-row", f"<table:table-row {collapsed}")
    content = ods(
        f"<table:table-column/><table:table-column {collapsed}/><table:table-column/>"
        + row(cell("Item"), cell("Cost"), cell("Count"))
        + row(
            cell("Chair"),
            cell("9"),
            "<table:table-cell><office:annotation><text:p>Ask Houtman</text:p></office:annotation>"
            "<text:p>40</text:p></table:table-cell>",
        )
        + hidden
        + f"<table:table-row-group>{hidden.replace('never', 'Table')}</table:table-row-group>"
        + hidden.replace("never", "Lamp").replace("collapse", "filter")
        + "<table:shapes><draw:custom-shape><text:p>Read this</text:p></draw:custom-shape></table:shapes>"
    ).replace("xmlns:text", 'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:text', 1)
    chart = (
        '<a xmlns:c="urn:oasis:names:tc:opendocument:xmlns:chart:1.0"><c:chart><c:title><p '
        'xmlns="urn:oasis:names:tc:opendocument:xmlns:text:1.0">Sales</p></c:title></c:chart></a>'
    )
    files = {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet", "Object 1/content.xml": chart.encode()}
    extracted = extract(make_zip(files | {"content.xml": content.encode()}), "a.ods")
    assert extracted.text == (
        "# Stock\n\nItem: Chair; Count: 40\nItem: Table\nItem: Lamp\n\nNote on Chair · 40: Ask Houtman\n\nRead this\n"
    )
    assert [(each.kind, each.names, each.count) for each in extracted.left_out] == [
        ("charts", ("Sales",), 1), ("hidden_cells", (), 2),
    ]  # fmt: skip


def binary_workbook(make_zip):
    """Return the least of an XLSB: a shown and a hidden sheet, with text and a number in a row."""

    def record(kind, data=b""):
        number = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
        return number + bytes([len(data)]) + data

    def text(words):
        return struct.pack("<I", len(words)) + words.encode("utf-16-le")

    def cells(*values):
        rows = [
            record(0, struct.pack("<IIHBBBI", row, 0, 300, 0, 0, 0, 0))
            + b"".join(
                record(6, struct.pack("<II", at, 0) + text(each))
                if isinstance(each, str)
                else record(5, struct.pack("<IId", at, 0, each))
                for at, each in enumerate(line)
            )
            for row, line in enumerate(values)
        ]
        size = struct.pack("<IIII", 0, len(values) - 1, 0, len(values[0]) - 1)
        return record(129) + record(148, size) + record(145) + b"".join(rows) + record(146) + record(130)

    sheets = [(0, "rId1", "Stock"), (1, "rId2", "Salaries")]
    book = b"".join(record(156, struct.pack("<II", state, 1) + text(key) + text(name)) for state, key, name in sheets)
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    relations = "".join(
        f'<Relationship Id="rId{at}" Type="{relation}" Target="worksheets/sheet{at}.bin"/>' for at in (1, 2)
    )
    return make_zip(
        {
            "xl/workbook.bin": record(131) + record(143) + book + record(144) + record(132),
            "xl/_rels/workbook.bin.rels": f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relations}</Relationships>'.encode(),
            "xl/worksheets/sheet1.bin": cells(["Name", "Price"], ["Pump", 12.5]),
            "xl/worksheets/sheet2.bin": cells(["secret", "x"]),
        }
    )


def said(extracted):
    return explain_left_out_parts((each.kind, list(each.names), each.count) for each in extracted.left_out)


def test_a_binary_workbook_is_read_without_formats_and_says_so(make_zip):
    extracted = extract(binary_workbook(make_zip), "a.xlsb")
    assert extracted.text == "# Stock\n\nName: Pump; Price: 12.5\n"
    assert said(extracted) == (
        "Not read: 1 hidden sheet (Salaries), the format of 1 number. "
        "Save the file as .xlsx and upload it: then zeros before a number are read."
    )


def test_a_workbook_with_a_part_that_stops_the_reader_is_read_by_the_other(make_zip):
    """The style sheet is not of the form that the library expects."""
    with zipfile.ZipFile(io.BytesIO(saved(prices()))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["xl/styles.xml"] = files["xl/styles.xml"].replace(b"<fill>", b'<fill><wrong at="1"/></fill><fill>', 1)
    extracted = extract(make_zip(files), "a.xlsx")
    assert "Article: MX-1; Category: Pumps; Weight (kg): 12.345; Price: 1250" in extracted.text
    assert [each.kind for each in extracted.left_out] == ["number_formats"]


PAGE = "| Naam | Prijs |\n| --- | --- |\n| Pomp | 12 |\n"


@pytest.mark.parametrize(
    ("source", "text", "media_type"),
    [
        ("Naam\tPrijs\nPomp\t00012\n", "Naam: Pomp; Prijs: 00012\n", "text/csv"),
        ("\ufeffNaam\tPrijs\nPomp\t12\n", "Naam: Pomp; Prijs: 12\n", "text/csv"),
        ("<html><body><table><tr><th>Naam</th><th>Prijs</th></tr><tr><td>Pomp</td><td>12</td></tr></table></body></html>",
         PAGE, "text/html"),
        ("<table><tr><td>Naam</td><td>Prijs</td></tr><tr><td>Pomp</td><td>12</td></tr></table>",
         PAGE, "text/html"),
    ],
)  # fmt: skip
def test_a_page_or_delimited_text_named_xls_is_read_as_a_table(source, text, media_type):
    encodings = ["utf-16"] if source.startswith("\ufeff") else ["utf-8"]
    for encoding in encodings:
        extracted = extract(source.lstrip("\ufeff").encode(encoding), "export.xls")
        assert (extracted.text, extracted.media_type) == (text, media_type)
    with pytest.raises(DocumentRejected, match="is not an old Excel workbook"):
        extract(b"\x01\x02,\x03", "export.xls")


SPREADSHEET_ML = """<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet" xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet">
<Styles><Style ss:ID="s1"><NumberFormat ss:Format="00000"/></Style>
<Style ss:ID="s2"><NumberFormat ss:Format="Short Date"/></Style></Styles>
<Worksheet ss:Name="Stock"><Table><Column/><Column/><Column ss:Hidden="1"/>
<Row><Cell ss:MergeAcross="1"><Data ss:Type="String">Pump list</Data></Cell></Row>
<Row ss:Index="3"><Cell><Data ss:Type="String">Code</Data></Cell><Cell><Data ss:Type="String">Since</Data></Cell>
<Cell><Data ss:Type="String">Cost</Data></Cell></Row>
<Row><Cell ss:StyleID="s1"><Data ss:Type="Number">123</Data><Comment><Data>Ask <B>Houtman</B></Data></Comment></Cell>
<Cell ss:StyleID="s2"><Data ss:Type="DateTime">2026-01-03T00:00:00.000</Data></Cell>
<Cell><Data ss:Type="Number">9</Data></Cell></Row></Table></Worksheet>
<Worksheet ss:Name="Old"><Table><Row><Cell><Data ss:Type="String">secret</Data></Cell></Row></Table>
<WorksheetOptions xmlns="urn:schemas-microsoft-com:office:excel"><Visible>SheetHidden</Visible></WorksheetOptions>
</Worksheet></Workbook>"""


@pytest.mark.parametrize("name", ["a.xls", "a.xml", "a.xlsx"])
def test_a_workbook_in_xml_is_read_like_others(name):
    extracted = extract(SPREADSHEET_ML.encode(), name)
    assert extracted.text == (
        "# Stock\n\n## Pump list\n\nCode: 00123; Since: 2026-01-03\n\nNote on 00123: Ask Houtman\n"
    )
    assert [(each.kind, each.count) for each in extracted.left_out] == [("sheets", 1), ("hidden_cells", 1)]


def repacked(make_zip, data, replaced):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for old, new in replaced:
        files = {name: body.replace(old, new) for name, body in files.items()}
    return make_zip(files)


@pytest.mark.parametrize(
    ("name", "replaced"),
    [
        ("a.xltx", [(b"spreadsheetml.sheet.main", b"spreadsheetml.template.main")]),
        ("a.xlsm", [(b"openxmlformats-officedocument.spreadsheetml.sheet.main", b"ms-excel.sheet.macroEnabled.main")]),
        ("a.xltm", [
            (b"openxmlformats-officedocument.spreadsheetml.sheet.main", b"ms-excel.template.macroEnabled.main"),
        ]),
        ("a.xlsx", [
            (b"schemas.openxmlformats.org/spreadsheetml/2006/main", b"purl.oclc.org/ooxml/spreadsheetml/main"),
            (b"schemas.openxmlformats.org/officeDocument/2006/relationships",
             b"purl.oclc.org/ooxml/officeDocument/relationships"),
        ]),
    ],
)  # fmt: skip
def test_templates_macros_and_strict_workbooks_are_read_with_their_true_content_types(make_zip, name, replaced):
    extracted = extract(repacked(make_zip, saved(prices()), replaced), name)
    assert (extracted.text, extracted.left_out) == (PRICES, ())


def test_notes_shapes_charts_and_hidden_parts_of_a_workbook(make_zip):
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for line in (["Item", "Cost", "Count"], ["Chair", 9, 40], ["Table", 8, 12], ["Lamp", 7, 5], ["Desk", 6, 3]):
        sheet.append(line)
    sheet["C3"].comment = openpyxl.comments.Comment("Ask\nHoutman", "me")
    sheet.column_dimensions["B"].hidden = True
    sheet.row_dimensions[4].hidden = True
    sheet.row_dimensions[5].hidden = True
    sheet.row_dimensions[5].outlineLevel = 1
    chart = openpyxl.chart.BarChart()
    chart.title = "Stock by item"
    chart.add_data(openpyxl.chart.Reference(sheet, min_col=3, min_row=1, max_row=3), titles_from_data=True)
    sheet.add_chart(chart, "E1")
    box = (
        b'<xdr:oneCellAnchor><xdr:sp xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><xdr:txBody><a:p>'
        b"<a:r><a:t>Read </a:t></a:r><a:r><a:t>this</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:oneCellAnchor>"
    )
    extracted = extract(saved(workbook), "a.xlsx")
    assert extracted.text == (
        "Item: Chair; Count: 40\nItem: Table; Count: 12\nItem: Desk; Count: 3\n\nNote on Table · 12: Ask Houtman\n"
    )
    assert [(each.kind, each.names, each.count) for each in extracted.left_out] == [
        ("charts", ("Stock by item",), 1), ("hidden_cells", (), 2),
    ]  # fmt: skip
    with zipfile.ZipFile(io.BytesIO(saved(workbook))) as archive:
        drawing = archive.read("xl/drawings/drawing1.xml")
    opening = drawing[: drawing.index(b">") + 1]
    drawn = opening.replace(
        b"<wsDr ", b'<wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" '
    )
    extracted = extract(repacked(make_zip, saved(workbook), [(opening, drawn + box)]), "a.xlsx")
    assert extracted.text.endswith("\n\nRead this\n")


def test_rows_that_a_filter_hides_are_read():
    workbook = openpyxl.Workbook()
    for line in (["Item", "Count"], ["Chair", 40], ["Table", 12]):
        workbook.active.append(line)
    workbook.active.auto_filter.ref = "A1:B3"
    workbook.active.auto_filter.add_filter_column(0, ["Chair"])
    workbook.active.row_dimensions[3].hidden = True
    extracted = extract(saved(workbook), "a.xlsx")
    assert extracted.text == "Item: Chair; Count: 40\nItem: Table; Count: 12\n"


def test_an_empty_column_within_a_table_does_not_tear_it_apart():
    assert sheet("PROGRESS", "", "Task||Owner|Status", "Design||Anouk|Done", "Testing||Bram|Open").text == (
        "## PROGRESS\n\nTask: Design; Owner: Anouk; Status: Done\nTask: Testing; Owner: Bram; Status: Open\n"
    )
    assert sheet("Task|Hours||Owner|Status", "Design|3||Anouk|Done", "Test|4||Bram|Open", "Plan|5||Cas|").text == (
        "Task: Design; Hours: 3; Owner: Anouk; Status: Done\nTask: Test; Hours: 4; Owner: Bram; Status: Open\n"
        "Task: Plan; Hours: 5; Owner: Cas\n"
    )
    # Two tables beside each other: with the same names, or of different height.
    assert sheet("a|b||a|b", "x|1||y|2", "z|3||v|4").text.count("\n\n") == 1
    assert sheet("a|b||c|d", "x|1||y|2", "z|3||", "w|5||").text == "a: x; b: 1\na: z; b: 3\na: w; b: 5\n\nc: y; d: 2\n"


@pytest.mark.parametrize("path", ["xl\\", ""])
def test_a_workbook_whose_parts_lie_elsewhere_is_read(make_zip, path):
    with zipfile.ZipFile(io.BytesIO(saved(prices()))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    moved = {
        name.replace("xl/", path).replace("worksheets/", f"worksheets{path[-1:] or '/'}"): body
        for name, body in files.items()
    }
    if not path:
        moved = {name: body.replace(b"/xl/", b"/").replace(b"xl/workbook", b"workbook") for name, body in moved.items()}
    assert "Article: MX-1; Category: Pumps; Weight (kg): 12.345" in extract(make_zip(moved), "a.xlsx").text


def test_numbers_and_days_keep_their_kind_whatever_their_format():
    workbook = openpyxl.Workbook()
    workbook.active.append(["Item", "Budget", "Result", "Day"])
    for at, (budget, result) in enumerate([(1250000, -1250.5), (900000, 0), (2500000, 310)], start=1):
        workbook.active.append([f"x{at}", budget, result, dt.date(2026, 1, at)])
        workbook.active.cell(at + 1, 2).number_format = '#,##0.0,,"M"'
        workbook.active.cell(at + 1, 3).number_format = '#,##0.00;(#,##0.00);"-"'
        workbook.active.cell(at + 1, 4).number_format = "dddd d mmmm yyyy"
    extracted = extract(saved(workbook), "a.xlsx")
    assert extracted.text.splitlines()[0] == "Item: x1; Budget: 1.3M; Result: -1250.50; Day: Thursday 2026-01-01"
    (table,) = read_tables(extracted)
    assert [column.kind for column in table.columns] == ["text", "number", "number", "date"]
    assert table.rows[1].values[1:] == (900000.0, 0.0, "2026-01-02")


def test_marks_codes_and_margins_of_a_sheet():
    book = openpyxl.Workbook()
    raised = TextBlock(InlineFont(vertAlign="superscript"), "6")
    book.active["A1"], book.active["B1"] = "Load", "Note"
    book.active["A2"], book.active["B2"] = CellRichText("10", raised), "_x0041_B"
    book.active.oddHeader.center.text = "Secret &P"
    book.active.oddFooter.left.text = "Page &P of &N"
    file = io.BytesIO()
    book.save(file)
    assert extract(file.getvalue(), "a.xlsx").text == "Load: 10^6; Note: AB\n\nSecret\n"
