"""Parts of PDF files beside the text: forms, notes, attached files, layers, fonts without a map."""

import pytest

from retrieval.documents.extraction import extract
from retrieval.documents.extraction.printed import PrintedLine, PrintedPage
from tests.support import bombs
from tests.support.pdf_forms import field, form

TICKED, EMPTY = b"/V /Yes /AS /Yes", b"/V /Off /AS /Off"
SHIFT = (160, 635, 260, 655)
ON = b"/AP << /N << /Yes 6 0 R /Off 6 0 R >> >>"
APPEARANCE = bombs.stream(b"", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9]")


@pytest.mark.parametrize(
    ("annotations", "lines"),
    [
        ([field(b"Tx", b"/V (Vermeulen)", (160, 695, 360, 715))], ["Surname: Vermeulen"]),
        ([field(b"Tx", b"/V (Jan\\rVermeulen)", (160, 660, 360, 712))], ["Surname: Jan", "Vermeulen"]),
        ([field(b"Btn", TICKED, (46, 668, 56, 678), ON)], ["☒ Certificate"]),
        ([field(b"Btn", EMPTY, (46, 668, 56, 678), ON)], ["☐ Certificate"]),
        ([field(b"Btn", TICKED, (160, 668, 170, 678), ON)], ["Certificate ☒"]),
        ([field(b"Btn", TICKED, (160, 668, 170, 678), ON + b" /Ff 32768")], ["Certificate ☒"]),
        ([field(b"Ch", b"/V (n) /Ff 131072 /Opt [[(d) (Day)] [(n) (Night)]]", SHIFT)], ["Shift: Night"]),
        ([field(b"Ch", b"/V [(Day) (Night)] /Ff 2097152 /Opt [(Day) (Eve) (Night)]", SHIFT)], ["Shift: Day, Night"]),
        ([b"/Subtype /FreeText /Contents (Seen by Kees) /Rect [160 695 360 715]"], ["Surname: Seen by Kees"]),
    ],
)  # fmt: skip
def test_values_and_drawn_notes_stand_beside_their_labels(annotations, lines):
    extracted = extract(form(*annotations, _6=APPEARANCE), "form.pdf")
    assert set(lines) <= set(extracted.text.split("\n"))
    assert not extracted.left_out


def test_values_stand_beside_words_that_are_recognised():
    label = PrintedLine("Surname:", (60, 82, 110, 93), 11.0)
    recognised = {1: PrintedPage(612.0, 792.0, [label])}
    data = form(field(b"Tx", b"/V (Vermeulen)", (160, 695, 360, 715)), content=b"0 0 612 792 re f")
    assert extract(data, "form.pdf", recognised=recognised).text == "Surname: Vermeulen\n"


@pytest.mark.parametrize(
    "annotation",
    [
        field(b"Tx", b"/V (Secret) /Ff 8192", (160, 695, 360, 715)),
        field(b"Tx", b"/V (Secret)", (160, 695, 360, 715)).replace(b"/F 4", b"/F 2"),
        b"/Subtype /Link /Contents (Secret) /Rect [160 695 360 715]",
    ],
)
def test_passwords_and_hidden_fields_are_not_read(annotation):
    extracted = extract(form(annotation), "form.pdf")
    assert "Secret" not in extracted.text
    assert not extracted.left_out


def test_comments_are_counted():
    note = b"/Subtype /Text /Contents (Check this) /Rect [10 10 30 30]"
    marked = b"/Subtype /Highlight /Contents (Really?) /Rect [60 690 90 710] /QuadPoints [60 710 90 710 60 690 90 690]"
    extracted = extract(form(note, marked, b"/Subtype /Highlight /Rect [60 690 90 710]"), "form.pdf")
    assert [(each.kind, each.count) for each in extracted.left_out] == [("comments", 2)]


def test_attached_files_are_members_and_those_that_cannot_be_read_are_named(make_pdf):
    def attached(name, number):
        return b"<< /Type /Filespec /F (%s) /EF << /F %d 0 R >> >>" % (name, number)

    names = b"/Names << /EmbeddedFiles << /Names [(a) 20 0 R (b) 21 0 R] >> >>"
    pinned = b"/Subtype /FileAttachment /Contents (Prices) /Rect [10 10 30 30] /FS 22 0 R"
    objects = {
        "_20": attached(b"annex.pdf", 30),
        "_21": attached(b"tool.exe", 31),
        "_22": attached(b"prices.csv", 32),
        "_30": bombs.stream(make_pdf(["775 euro"]), b"/Type /EmbeddedFile"),
        "_31": bombs.stream(b"MZ\x90\0\3", b"/Type /EmbeddedFile"),
        "_32": bombs.stream(b"a,b\n1,2\n", b"/Type /EmbeddedFile"),
    }
    extracted = extract(form(pinned, catalog=names, **objects), "portfolio.pdf")
    assert [member.name for member in extracted.members] == ["annex.pdf", "prices.csv"]
    assert [(each.kind, each.names) for each in extracted.left_out] == [("unreadable", ("tool.exe",))]


@pytest.mark.parametrize(
    ("fields", "is_named"), [((), True), ((field(b"Tx", b"/V (A)", (160, 695, 360, 715)),), False)]
)
def test_a_form_that_only_its_program_can_show_is_named(fields, is_named):
    data = form(*fields).replace(b"/DA (/F1 0 Tf)", b"/XFA [(template) 6 0 R]")
    extracted = extract(data, "form.pdf")
    assert ("form" in [each.kind for each in extracted.left_out]) is is_named


def test_layers_that_are_switched_off_are_left_out():
    line = b"BT /F1 11 Tf 60 %d Td (%s) Tj ET "
    content = (
        line % (700, b"Always here")
        + b"/OC /Off BDC " + line % (680, b"Draft 999") + b"EMC "
        + b"/OC /On BDC " + line % (660, b"Final 123") + b"EMC "
        + b"/OC /On BDC 3 Tr " + line % (640, b"Recognised 456") + b"EMC 0 Tr /Form Do"
    )  # fmt: skip
    data = form(
        content=content,
        catalog=b"/OCProperties << /OCGs [20 0 R 21 0 R] /D << /OFF [20 0 R] >> >>",
        resources=b"/Properties << /Off 20 0 R /On 21 0 R >> /XObject << /Form 22 0 R >>",
        _20=b"<< /Type /OCG /Name (Draft) >>",
        _21=b"<< /Type /OCG /Name (Final) >>",
        _22=bombs.stream(
            line % (620, b"Form 777"),
            b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /OC 20 0 R /Resources << /Font << /F1 5 0 R >> >>",
        ),
    )
    extracted = extract(data, "layers.pdf")
    assert extracted.text.split() == ["Always", "here", "Final", "123", "Recognised", "456"]
    assert [(each.kind, each.names, each.count) for each in extracted.left_out] == [("layers", ("Draft",), 2)]


def shifted(text, by):
    return "".join(chr(ord(sign) + by) if sign.isalpha() else sign for sign in text)


SENTENCE = "the office confirms that every pump is opened before winter and\nthat the flow of water is twelve litres\n"


def test_a_page_whose_font_has_a_wrong_map_is_to_be_recognised(make_pdf):
    extracted = extract(make_pdf([shifted(SENTENCE * 2, 3), SENTENCE * 2]), "m.pdf")
    assert extracted.unread_pages == [1]
    assert extracted.text.split() == (SENTENCE * 2).split()


@pytest.mark.parametrize(
    "text",
    [
        "XK-4711 QRT-88 ZZW-19 HGT-3\n" * 30,
        "xkq47zz1 qrt88h zzw19bb\n" * 30,
        "acgttagcca ggcattacgg\n" * 30,
        "Przykładowe zdanie w języku polskim które sprawdza czy to działa\n" * 5,
        "7 8 9 10\n" * 30,
    ],
)
def test_lists_of_codes_and_other_languages_are_no_such_pages(make_pdf, text):
    latin = text.encode("cp1252", "ignore").decode("cp1252")
    assert not extract(make_pdf([latin]), "m.pdf").unread_pages


def test_columns_of_few_lines_are_read_one_after_the_other(make_pdf):
    left = ["The committee reviewed the", "report of the harbour and", "noted that the quay", "needs new bollards."]
    right = ["It approved a budget of", "61,000 euro for the year,", "to be spent on the quay"]
    runs = [(60.0, 740.0, 11.0, "Decisions")]
    for at, line in enumerate(left):
        runs.append((60.0, 700.0 - 13 * at, 11.0, line))
        runs += [(260.0, 700.0 - 13 * at, 11.0, right[at])] if at < len(right) else []
    text = extract(make_pdf([runs]), "m.pdf").text
    assert text.split() == " ".join(["Decisions", *left, *right]).split()


def test_turned_lines_stand_behind_the_others(make_pdf):
    turned = "BT /F1 11 Tf 0 1 -1 0 40 300 Tm (Number of pumps) Tj ET"
    text = extract(
        make_pdf([[(60.0, 700.0, 11.0, "The chart shows"), turned, (60.0, 686.0, 11.0, "growth.")]]), "m.pdf"
    ).text
    assert text == "The chart shows\ngrowth.\n\nNumber of pumps\n"


def test_words_that_are_not_in_the_text_are_counted(make_pdf, monkeypatch):
    monkeypatch.setattr("retrieval.documents.extraction.pdf.replace_by_tables", lambda lines, rules: lines[1:])
    left_out = extract(make_pdf(["Order 47-K\nfor Vermeulen"]), "m.pdf").left_out
    assert [(each.kind, each.names, each.count) for each in left_out] == [("words", ("Order", "47", "K"), 3)]
