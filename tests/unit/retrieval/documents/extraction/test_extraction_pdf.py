from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval.documents.extraction import ExtractionLimits, extract
from retrieval.documents.extraction.sandboxed import build_sandbox_limits, extract_in_sandbox
from retrieval.exceptions import DocumentRejected
from retrieval.tables.table_reading import read_tables


def test_pages_outline_title_and_words_cut_at_line_ends(make_pdf):
    data = make_pdf(
        ["Service manual\nThe installa-\ntion of a well-\nknown pump.", "2 Safety\nThis well-known rule."],
        title="Handleiding é",
        outline=[("Safety", 1), ("Not in the text", 1)],
    )
    extracted = extract(data, "manual.pdf")
    assert (extracted.media_type, extracted.title) == ("application/pdf", "Handleiding é")
    assert [extracted.text[page.start : page.end] for page in extracted.pages] == [
        "Service manual\nThe installation of a well-known pump.",
        "2 Safety\nThis well-known rule.",
    ]
    assert [page.number for page in extracted.pages] == [1, 2]
    assert [(section.title, extracted.page_at(section.start)) for section in extracted.sections] == [("Safety", 2)]
    assert extracted.text[extracted.sections[0].start :].startswith("2 Safety")


def test_running_headers_and_page_numbers_are_dropped_and_nothing_else(make_pdf):
    pages = [
        f"Merwe manual SM-4471\nIts value is {n * 7}\nTopic {word}\nPage {n} of 5"
        for n, word in enumerate(["a", "b", "c", "d", "e"], 1)
    ]
    text = extract(make_pdf(pages), "m.pdf").text
    assert "Merwe" not in text
    assert "Page" not in text
    kept = [line for line in text.split("\n") if line]
    assert kept == [line for n, word in enumerate("abcde", 1) for line in (f"Its value is {n * 7}", f"Topic {word}")]


def test_a_running_header_is_known_by_any_of_its_numbers(make_pdf):
    pages = [f"Manual 12 Bookworm {number} / 5\nIts value is {number * 7}" for number in range(1, 6)]
    assert "Bookworm" not in extract(make_pdf(pages), "m.pdf").text


def test_the_entries_of_a_table_of_contents_are_left_out(make_pdf):
    entries = "\n".join(f"{n}.1 Part {n} . . . . . . . . {n}" for n in range(1, 5))
    contents = f"Contents\n1 Chapter 1\n{entries}\n2 Chapter 3"
    text = extract(make_pdf([contents, "It ends after ... 5\nYears pass: 12"]), "m.pdf").text
    assert text.split() == ["Contents", "It", "ends", "after", "...", "5", "Years", "pass:", "12"]


def test_short_files_keep_every_line(make_pdf):
    assert extract(make_pdf(["Same\none", "Same\ntwo", "Same\nthree"]), "m.pdf").text.count("Same") == 3


def test_a_protected_pdf_says_what_to_do(make_pdf):
    message = "report.pdf is password-protected: remove the password and upload it again."
    with pytest.raises(DocumentRejected, match=message):
        extract(make_pdf(["secret"], protected=True), "report.pdf")


def test_a_page_without_text_is_to_be_recognised(make_pdf):
    extracted = extract(make_pdf(["secret"], image_only=True), "report.pdf")
    assert (extracted.text.strip(), extracted.unread_pages) == ("", [1])


def test_damaged_and_oversized_pdfs_are_rejected(make_pdf):
    with pytest.raises(DocumentRejected, match="damaged PDF") as caught:
        extract(make_pdf(["words"])[:200], "report.pdf")
    assert caught.value.__cause__ is not None
    with pytest.raises(DocumentRejected, match="more than 2 pages"):
        extract(make_pdf(["a", "b", "c"]), "report.pdf", limits=ExtractionLimits(max_pages=2))
    with pytest.raises(DocumentRejected, match="more than 5 characters"):
        extract(make_pdf(["many words"]), "report.pdf", limits=ExtractionLimits(max_text_chars=5))


def test_threads_can_read_at_once(make_pdf):
    """The library for PDF files allows one thread: reading is in a process of its own."""
    data = make_pdf([f"Page text {n}" for n in range(20)])
    expected = extract(data, "a.pdf").text
    limits = ExtractionLimits()

    def read(_number):
        return extract_in_sandbox(data, "a.pdf", limits=limits, job_limits=build_sandbox_limits(512, 60, limits)).text

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read, range(8))) == [expected] * 8


def column(x, lines, top=700):
    return [(x, top - 13 * at, 10, line) for at, line in enumerate(lines)]


LEFT = [f"The left column says in its line {n} what" for n in "abcdefgh"]
RIGHT = [f"The right column says in its line {n} so" for n in "abcdefgh"]


@pytest.mark.parametrize("written", ["by column", "by row", "backwards"])
def test_columns_are_read_one_after_the_other(make_pdf, written):
    left, right = column(60, LEFT), column(320, RIGHT)
    runs = {
        "by column": left + right,
        "by row": [run for row in zip(left, right, strict=True) for run in row],
        "backwards": (left + right)[::-1],
    }[written]
    title = (60.0, 740.0, 10.0, "A line over the whole width of the page, as it stands above the two columns of text.")
    text = extract(make_pdf([[title, *runs]]), "two.pdf").text
    assert [line for line in text.split("\n") if line] == [title[3], *LEFT, *RIGHT]


def test_headings_paragraphs_and_what_goes_on_over_the_end_of_a_page(make_pdf):
    first = [
        (60.0, 740.0, 20.0, "Maintenance of pumps"),
        (60.0, 700.0, 14.0, "1 Vent"),
        *column(60, ["Open the valve and wait until the water is free of", "bubbles, which takes a minute."], 680),
        *column(60, ["A second paragraph is set off by a gap and is con-"], 640),
    ]
    second = [
        *column(60, ["tinued on the next page, where its sentence has its end."], 740),
        (60.0, 700.0, 14.0, "1.1 Drain"),
        *column(60, ["Close the valve."], 680),
    ]
    extracted = extract(make_pdf([first, second]), "m.pdf")
    assert extracted.title == "Maintenance of pumps"
    assert [(section.level, section.title) for section in extracted.sections] == [
        (1, "Maintenance of pumps"),
        (1, "1 Vent"),
        (2, "1.1 Drain"),
    ]
    assert "is set off by a gap and is continued on the next page" in extracted.text
    assert "free of\nbubbles, which takes a minute.\n\nA second" in extracted.text
    assert extracted.text[extracted.pages[1].start :].startswith("tinued on")


def test_titles_of_chapters_at_the_top_of_pages_are_dropped(make_pdf):
    bodies = [[f"Line {word} {n} is text." for n in "abcd"] for word in ["one", "two", "three", "four", "five", "six"]]
    titles = ["Chapter 1: first"] * 3 + ["Chapter 2: second"] * 3
    pages = [[(60.0, 760.0, 9.0, title), *column(60, body)] for title, body in zip(titles, bodies, strict=True)]
    assert extract(make_pdf(pages), "m.pdf").text.split() == " ".join(line for body in bodies for line in body).split()


def ruled(rows, top, *, is_grid):
    """Return a table at the sides 60 to 460 with columns of 100 points, drawn with a grid or with three rules."""
    runs = [
        (64.0 + 100 * column, top - 14 - 20 * at, 10.0, cell)
        for at, row in enumerate(rows)
        for column, cell in enumerate(row)
    ]
    width, height = 100 * len(rows[0]), 20 * len(rows)
    levels = range(len(rows) + 1) if is_grid else (0, 1, len(rows))
    runs += [f"60 {top - 20 * level} m {60 + width} {top - 20 * level} l S" for level in levels]
    if is_grid:
        runs += [f"{60 + 100 * at} {top} m {60 + 100 * at} {top - height} l S" for at in range(len(rows[0]) + 1)]
    return runs


PUMPS = [["Pump", "Power", "Weight"], ["MX-1", "45 W", "12 kg"], ["MX-2", "185 W", "34 kg"], ["MX-3", "370 W", ""]]
PUMPS_AS_MARKDOWN = "".join(
    f"| {line} |\n" for line in ("Pump | Power | Weight", "--- | --- | ---", *map(" | ".join, PUMPS[1:]))
).rstrip()


@pytest.mark.parametrize("is_grid", [True, False])
def test_tables_with_rules_are_data(make_pdf, is_grid):
    page = [*column(60, ["What the pumps cost."], 740), *ruled(PUMPS, 700, is_grid=is_grid)]
    extracted = extract(make_pdf([[*page, *column(60, ["Words below the table."], 560)]]), "m.pdf")
    assert extracted.text == f"What the pumps cost.\n\n{PUMPS_AS_MARKDOWN}\n\nWords below the table.\n"
    (table,) = read_tables(extracted)
    assert [column.kind for column in table.columns] == ["text", "number", "number"]
    assert table.rows[1].values[1] == 185


def test_a_table_goes_on_over_the_end_of_a_page(make_pdf):
    first = [*column(60, ["What the pumps cost."], 740), *ruled(PUMPS[:3], 700, is_grid=True)]
    again = ruled([PUMPS[0], PUMPS[3]], 740, is_grid=True)
    for rest in (again, ruled([PUMPS[3], ["MX-4", "1 W", "9 kg"]], 740, is_grid=True)):
        text = extract(make_pdf([first, rest]), "m.pdf").text
        assert text.startswith(f"What the pumps cost.\n\n{PUMPS_AS_MARKDOWN}")
        assert text.count("---") == 3


def aligned(rows, top, pitch=18):
    """Cells at 60, 200, 320 and 420; an empty one is not printed."""
    places = (60.0, 200.0, 320.0, 420.0)
    return [
        (places[column], top - pitch * at, 10.0, cell)
        for at, row in enumerate(rows)
        for column, cell in enumerate(row)
        if cell
    ]


def test_a_table_without_rules_is_told_by_its_columns(make_pdf):
    """It has names over two columns, a name for the rows below it, and the same header on the next page."""
    header = [["", "", "2023", ""], ["Region", "Product", "Units", "Turnover"]]
    over_both = [(375.0, 700.0, 10.0, "2023"), *aligned([header[1]], 682)]
    rows = [["North", "Pumps", "120", "€ 1,200"], ["", "Valves", "35", "€ 310"], ["South", "Pumps", "97", "€ 960"]]
    first = [*column(60, ["What the regions sold."], 740), *over_both, *aligned(rows, 664)]
    more = [["West", "Seals", "12", "€ 48"], ["", "Valves", "9", "€ 81"]]
    second = [
        *[(x, y + 30, size, text) for x, y, size, text in over_both],
        *aligned(more, 694),
        *column(60, ["Words below the table."], 600),
    ]
    extracted = extract(make_pdf([first, second]), "m.pdf")
    expected = [
        "| Region | Product | 2023 Units | 2023 Turnover |",
        "| --- | --- | --- | --- |",
        "| North | Pumps | 120 | € 1,200 |",
        "| North | Valves | 35 | € 310 |",
        "| South | Pumps | 97 | € 960 |",
        "| West | Seals | 12 | € 48 |",
        "| West | Valves | 9 | € 81 |",
    ]
    assert extracted.text.split("\n\n") == ["What the regions sold.", "\n".join(expected), "Words below the table.\n"]
    (table,) = read_tables(extracted)
    assert [(found.kind, found.unit) for found in table.columns][2:] == [("number", ""), ("number", "eur")]


def test_merged_cells_of_a_grid_stand_in_each_row_and_column(make_pdf):
    sides, top = (60, 160, 260, 360), 700
    runs = [
        f"60 {top} m 360 {top} l S",
        f"160 {top - 20} m 360 {top - 20} l S",
        f"60 {top - 40} m 360 {top - 40} l S",
        f"160 {top - 60} m 360 {top - 60} l S",
        f"60 {top - 80} m 360 {top - 80} l S",
        *(f"{x} {top if x != 260 else top - 20} m {x} {top - 80} l S" for x in sides),
        (64.0, top - 14.0, 10.0, "Pump"),
        (230.0, top - 14.0, 10.0, "Weight"),
        (164.0, top - 34.0, 10.0, "dry"),
        (264.0, top - 34.0, 10.0, "filled"),
        (64.0, top - 54.0, 10.0, "MX"),
        (164.0, top - 54.0, 10.0, "12 kg"),
        (264.0, top - 54.0, 10.0, "13 kg"),
        (164.0, top - 74.0, 10.0, "34 kg"),
        (264.0, top - 74.0, 10.0, "37 kg"),
    ]
    text = extract(make_pdf([runs]), "m.pdf").text
    assert text.splitlines() == [
        "| Pump | Weight dry | Weight filled |",
        "| --- | --- | --- |",
        "| MX | 12 kg | 13 kg |",
        "| MX | 34 kg | 37 kg |",
    ]


WRAPPED = [
    ["Name", "Distance", "Where", "Remark"],
    ["Seppo", "20.15", "Turku,", "none"],
    ["Matti", "20.04", "Oulu", "wind"],
]
WRAPPED_AS_MARKDOWN = [
    "| Name | Distance | Where | Remark |",
    "| --- | --- | --- | --- |",
    "| Seppo | 20.15 | Turku, Finland | none |",
    "| Matti | 20.04 | Oulu | wind |",
    "| Bo | 20.09 | Espoo | none |",
]


@pytest.mark.parametrize("drawn", ["a rule a row", "shades", "nothing"])
def test_a_cell_of_two_lines_is_one_cell(make_pdf, drawn):
    """The other cells of its row are centred vertically, as browsers print them."""
    places, tops = (60.0, 200.0, 320.0, 420.0), [700.0, 676.0, 646.0, 622.0]
    runs = []
    for at, row in enumerate([*WRAPPED, ["Bo", "20.09", "Espoo", "none"]]):
        for place, cell in zip(places, row, strict=True):
            runs += (
                [(place, tops[at] + 6, 10.0, cell), (place, tops[at] - 6, 10.0, "Finland")]
                if cell == "Turku,"
                else [(place, tops[at], 10.0, cell)]
            )
    borders = [712.0, 690.0, 658.0, 634.0, 612.0]
    if drawn == "a rule a row":
        runs += [f"56 {y} m 480 {y} l S" for y in borders[1:]]
    elif drawn == "shades":
        runs = [f"0.9 g 56 {y} 424 {height} re f 0 g" for y, height in ((658.0, 32.0), (612.0, 22.0))] + runs
    assert extract(make_pdf([runs]), "m.pdf").text.splitlines() == WRAPPED_AS_MARKDOWN


NO_TABLES = {
    "contents": [["Contents", "", ""], *([f"{n}.1", f"Pumps of kind {n}", str(3 * n)] for n in range(1, 9))],
    "form": [
        ["Name:", "J. Bos", "Number:", "12"],
        ["Place:", "Urk", "Weight:", "81"],
        ["Day:", "1-2-2020", "Age:", "9"],
    ],
    "addresses": [["North", "South", "Office"], ["Kade 1", "Markt 4", "Dam 1"], ["9711 AB", "6211 CD", "1012 EF"]],
    "code": [["rows = []", "# what is read"], ["total = 0", "# of all"], ["limit = 9", "# most"], ["x = 1", "# y"]],
    "words": [["Impeller", "The wheel that moves the water."], ["Head", "The height."], ["Seal", "Keeps it dry."]],
}


@pytest.mark.parametrize("kind", NO_TABLES)
def test_what_stands_in_columns_is_not_always_a_table(make_pdf, kind):
    page = [*column(60, ["A line of text above it."], 740), *aligned(NO_TABLES[kind], 700)]
    assert "---" not in extract(make_pdf([page]), "m.pdf").text
