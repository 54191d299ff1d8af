"""Parts of Word, PowerPoint and OpenDocument outside of plain paragraphs: they are read, or named."""

import io
import zipfile

import docx
import pptx
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from lxml import etree
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from retrieval.documents.extraction import extract
from retrieval.documents.extraction.office_xml import read_chart, write_subscript, write_superscript
from retrieval.text.extracted import LeftOutParts

W = nsdecls("w") + (
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:v="urn:schemas-microsoft-com:vml"'
)
TEXT_BOX = "<w:txbxContent><w:p><w:r><w:t>Badge 47-K</w:t></w:r></w:p></w:txbxContent>"


def read_word(body, save_docx, prepare=lambda document: None):
    document = docx.Document()
    prepare(document)
    document.element.body.insert(0, parse_xml(f"<w:p {W}>{body}</w:p>"))
    return extract(save_docx(document), "a.docx")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            f"<w:r><w:t>See.</w:t><w:pict><v:shape><v:textbox>{TEXT_BOX}</v:textbox></v:shape></w:pict></w:r>",
            "Badge 47-K",
        ),
        (
            "<w:r><w:t>See.</w:t><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wps:txbx>"
            f"{TEXT_BOX}</wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>{TEXT_BOX}</v:textbox></w:pict>"
            "</mc:Fallback></mc:AlternateContent></w:r>",
            "See.\n\nBadge 47-K\n",
        ),
        ("<w:fldSimple w:instr='DOCPROPERTY Order'><w:r><w:t>PO-77310</w:t></w:r></w:fldSimple>", "PO-77310"),
        (
            "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:checkBox><w:default w:val='0'/><w:checked/>"
            "</w:checkBox></w:ffData></w:fldChar></w:r><w:r><w:t> Express</w:t></w:r>",
            "☒ Express",
        ),
        (
            "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:checkBox><w:default w:val='0'/></w:checkBox>"
            "</w:ffData></w:fldChar></w:r><w:r><w:t> Express</w:t></w:r>",
            "☐ Express",
        ),
        (
            "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='Day'/>"
            "<w:listEntry w:val='Night'/></w:ddList></w:ffData></w:fldChar></w:r>",
            "Night",
        ),
        ("<w:r><w:sym w:font='Wingdings' w:char='F0FE'/><w:t> Signed</w:t></w:r>", "☒ Signed"),
        (
            "<w:r><w:t>$320</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>1</w:t></w:r>",
            "$320^1",
        ),
        (
            "<w:r><w:t>H</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='subscript'/></w:rPr><w:t>2</w:t></w:r>"
            "<w:r><w:t>O</w:t></w:r>",
            "H2O",
        ),
        (
            "<w:r><w:t>It is </w:t></w:r><m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t>"
            "</m:r></m:den></m:f></m:oMath><w:r><w:t> wide.</w:t></w:r>",
            "It is a/b wide.",
        ),
        (
            "<w:r><w:sym w:font='Symbol' w:char='F0A3'/><w:t> 5</w:t><w:sym w:font='Symbol' w:char='F0B0'/></w:r>",
            "≤ 5°",
        ),
        (
            "<w:r><w:rPr><w:rFonts w:ascii='Symbol'/></w:rPr><w:t>\uf061 \uf0b1</w:t></w:r><w:r><w:t> 2</w:t></w:r>",
            "α ± 2",
        ),
        (
            "<w:r><w:ruby><w:rt><w:r><w:t>とう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東</w:t></w:r></w:rubyBase>"
            "</w:ruby></w:r>",
            "東 (とう)",
        ),
        (
            "<w:r><w:t>Hi </w:t><mc:AlternateContent><mc:Choice Requires='w16se'><w:sym/></mc:Choice><mc:Fallback>"
            "<w:t>😊</w:t></mc:Fallback></mc:AlternateContent></w:r>",
            "😊",
        ),
        ("<w:r><w:t>end.</w:t><w:br w:type='page'/><w:t>Next</w:t></w:r>", "end.\nNext"),
        (
            "<m:oMath><m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e><m:m><m:mr><m:e><m:r><m:t>1"
            "</m:t></m:r></m:e><m:e><m:r><m:t>2</m:t></m:r></m:e></m:mr><m:mr><m:e><m:r><m:t>3</m:t></m:r></m:e><m:e>"
            "<m:r><m:t>4</m:t></m:r></m:e></m:mr></m:m></m:e></m:d></m:oMath>",
            "[1, 2; 3, 4]",
        ),
        (
            "<m:oMath><m:limLow><m:e><m:r><m:t>lim</m:t></m:r></m:e><m:lim><m:r><m:t>n</m:t></m:r></m:lim></m:limLow>"
            "</m:oMath>",
            "lim_n",
        ),
    ],
)
def test_word_shows_it_and_it_is_read(body, expected, save_docx):
    extracted = read_word(body, save_docx)
    assert expected in extracted.text
    assert extracted.text.count("47-K") <= 1
    assert extracted.left_out == ()


@pytest.mark.parametrize(
    ("body", "kind", "count"),
    [
        ("<w:r><w:rPr><w:vanish/></w:rPr><w:t>obey me now</w:t></w:r><w:r><w:t>Words.</w:t></w:r>", "hidden", 3),
        ("<w:r><w:rPr><w:strike/></w:rPr><w:t>50 euro</w:t></w:r><w:r><w:t>40 euro</w:t></w:r>", "struck", 2),
    ],
)
def test_what_word_hides_or_strikes_out_is_named(body, kind, count, save_docx):
    extracted = read_word(body, save_docx)
    assert extracted.left_out == (LeftOutParts(kind, (), count),)
    assert "obey" not in extracted.text
    assert "50" not in extracted.text


def test_an_element_that_no_reader_knows_is_named(save_docx):
    unknown = "<w:r><w:t>Words.</w:t></w:r><w:unheardOf><w:r><w:t>Gate 12</w:t></w:r></w:unheardOf>"
    assert read_word(unknown, save_docx).left_out == (LeftOutParts("words", ("Gate", "12"), 2),)


def test_comments_are_counted(save_docx):
    document = docx.Document()
    run = document.add_paragraph("Text.").runs[0]
    document.add_comment(run, text="Is this so?", author="Ann")
    assert extract(save_docx(document), "a.docx").left_out == (LeftOutParts("comments", (), 1),)


def test_headers_and_footers_are_read_once(save_docx):
    document = docx.Document()
    document.add_paragraph("Body.")
    document.sections[0].header.paragraphs[0].text = "Policy HR-12"
    document.sections[0].footer.paragraphs[0].text = "Page 1 of 2"
    assert extract(save_docx(document), "a.docx").text == "Body.\n\nPolicy HR-12\n"


def test_inserted_files_are_read_in_their_place(save_docx):
    document = docx.Document()
    page = b"<html><body><h2>Stock</h2><p>640 pallets</p></body></html>"
    part = Part(PackURI("/word/chunk.html"), "text/html", page, document.part.package)
    relation = document.part.relate_to(part, RELATIONSHIP_TYPE.A_F_CHUNK)
    chunk = f'<w:altChunk {W} {nsdecls("r")} r:id="{relation}"/>'
    document.element.body.insert(0, parse_xml(chunk))
    document.add_paragraph("After.")
    extracted = extract(save_docx(document), "a.docx")
    assert extracted.text == "## Stock\n\n640 pallets\n\nAfter.\n"
    assert [(section.start, section.title) for section in extracted.sections] == [(0, "Stock")]


def numbered(levels, paragraphs, overrides=""):
    """Return a document whose paragraphs are (list, level, text), with a definition of its levels for each list."""
    document = docx.Document()
    root = document.part.numbering_part.element
    for child in list(root):
        root.remove(child)
    definition = "".join(
        f'<w:lvl w:ilvl="{at}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/>'
        f'<w:lvlText w:val="{pattern}"/></w:lvl>'
        for at, (start, form, pattern) in enumerate(levels)
    )
    root.append(parse_xml(f'<w:abstractNum {W} w:abstractNumId="0">{definition}</w:abstractNum>'))
    for number in sorted({number for number, _, _ in paragraphs if number}):
        more = overrides if number > 1 else ""
        root.append(parse_xml(f'<w:num {W} w:numId="{number}"><w:abstractNumId w:val="0"/>{more}</w:num>'))
    for number, level, text in paragraphs:
        paragraph = document.add_paragraph(text)
        if number:
            properties = paragraph._p.get_or_add_pPr()
            properties.append(parse_xml(f'<w:numPr {W}><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'))
    return document


@pytest.mark.parametrize(
    ("levels", "paragraphs", "expected"),
    [
        (  # An interrupted list continues.
            [(1, "decimal", "%1.")],
            [(1, 0, "Open"), (0, 0, "Wait."), (1, 0, "Close")],
            "1. Open\n\nWait.\n\n2. Close\n",
        ),
        (
            [(1, "decimal", "%1."), (1, "decimal", "%1.%2")],
            [(1, 0, "Rent"), (1, 1, "Amount"), (1, 1, "Term"), (1, 0, "End"), (1, 1, "Notice")],
            "1. Rent\n   - 1.1 Amount\n   - 1.2 Term\n2. End\n   - 2.1 Notice\n",
        ),
        ([(3, "lowerLetter", "%1)")], [(1, 0, "x"), (1, 0, "y")], "- c) x\n- d) y\n"),
        (
            [(1, "upperRoman", "Article %1")],
            [(1, 0, "x")] * 4,
            "".join(f"- Article {n} x\n" for n in ("I", "II", "III", "IV")),
        ),
        ([(1, "bullet", "•")], [(1, 0, "x")], "- x\n"),
        ([(1, "none", "Note:")], [(1, 0, "x")], "- Note: x\n"),
        (  # The legal list of Word keeps its zero.
            [(1, "upperRoman", "Article %1."), (1, 'decimalZero"/><w:isLgl w:val="1', "Section %1.%2")],
            [(1, 0, "Aim"), (1, 1, "x")],
            "- Article I. Aim\n   - Section 1.01 x\n",
        ),
        (  # A level that does not begin again.
            [(1, "decimal", "%1."), (1, 'decimal"/><w:lvlRestart w:val="0', "Rule %2")],
            [(1, 0, "A"), (1, 1, "x"), (1, 0, "B"), (1, 1, "y")],
            "1. A\n   - Rule 1 x\n2. B\n   - Rule 2 y\n",
        ),
    ],
)
def test_numbers_are_those_that_word_shows(levels, paragraphs, expected, save_docx):
    assert extract(save_docx(numbered(levels, paragraphs)), "a.docx").text == expected


def test_a_list_may_have_a_level_of_its_own(save_docx):
    own = (
        '<w:lvlOverride w:ilvl="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="upperLetter"/>'
        '<w:lvlText w:val="Annex %1"/></w:lvl></w:lvlOverride>'
    )
    document = numbered([(1, "decimal", "%1.")], [(2, 0, "a"), (2, 0, "b")], own)
    assert extract(save_docx(document), "a.docx").text == "- Annex A a\n- Annex B b\n"


def test_words_that_a_style_hides_are_named(save_docx):
    def hide(document):
        document.styles.add_style("Secret", 2).font.hidden = True

    body = "<w:r><w:t>Shown.</w:t></w:r><w:r><w:rPr><w:rStyle w:val='Secret'/></w:rPr><w:t>obey me</w:t></w:r>"
    extracted = read_word(body, save_docx, hide)
    assert (extracted.text, extracted.left_out) == ("Shown.\n", (LeftOutParts("hidden", (), 2),))


def test_rows_of_a_header_are_lines_and_cells_before_a_row_stay_empty(save_docx):
    document = docx.Document()
    margin = document.sections[0].header.add_table(1, 2, Inches(3))
    margin.cell(0, 0).text, margin.cell(0, 1).text = "Version", "7.2"
    table = document.add_table(2, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Dept", "Name"
    row = table.rows[1]._tr
    row.remove(row.tc_lst[0])
    row.get_or_add_trPr().append(parse_xml(f'<w:gridBefore {W} w:val="1"/>'))
    row.tc_lst[0].p_lst[0].add_r().text = "Ann"
    assert extract(save_docx(document), "a.docx").text == "| Dept | Name |\n| --- | --- |\n|  | Ann |\n\nVersion 7.2\n"


def test_charts_show_values_as_their_formats_do():
    def points(name, shape, values):
        found = "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values))
        return f"<c:{name}><c:numCache><c:formatCode>{shape}</c:formatCode>{found}</c:numCache></c:{name}>"

    def read(series):
        of = "http://schemas.openxmlformats.org/drawingml/2006/chart"
        return read_chart(etree.fromstring(f'<c:chart xmlns:c="{of}">{series}</c:chart>'))[1][1:]

    days = points("cat", "yyyy-mm-dd", [46023, 46054]) + points("val", "0%", [0.25, 0.5])
    assert read(f"<c:ser>{days}</c:ser>") == [["2026-01-01", "25%"], ["2026-02-01", "50%"]]
    one, two = (points("xVal", "General", [at]) + points("yVal", "General", [at + 1]) for at in (1, 7))
    assert read(f"<c:ser>{one}</c:ser><c:ser>{two}</c:ser>") == [["1", "2", ""], ["7", "", "8"]]
    size = points("bubbleSize", "General", [50])
    assert read(f"<c:ser>{one}{size}</c:ser>") == [["1", "2 (size 50)"]]


def test_slides_show_numbers_and_leave_out_what_is_hidden_or_struck_out():
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    hidden, shown = (slide.shapes.add_textbox(0, Inches(at), Inches(3), Inches(1)) for at in (0, 2))
    hidden.text_frame.text = "secret words"
    hidden._element.nvSpPr.cNvPr.set("hidden", "1")
    shown.text_frame.text = "Open"
    paragraph = shown.text_frame.paragraphs[0]
    counted = "{http://schemas.openxmlformats.org/drawingml/2006/main}buAutoNum"
    etree.SubElement(paragraph._p.get_or_add_pPr(), counted).set("type", "alphaLcParenR")
    run = paragraph.add_run()
    run.text = " 99"
    run._r.get_or_add_rPr().set("strike", "sngStrike")
    file = io.BytesIO()
    deck.save(file)
    extracted = extract(file.getvalue(), "a.pptx")
    assert extracted.text == "# Slide 1\n\n- a) Open\n"
    assert extracted.left_out == (LeftOutParts("hidden", (), 2), LeftOutParts("struck", (), 1))


def test_a_list_that_restarts_begins_at_its_own_number(save_docx):
    restart = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    document = numbered([(1, "decimal", "%1.")], [(1, 0, "a"), (1, 0, "b"), (2, 0, "c"), (2, 0, "d")], restart)
    assert extract(save_docx(document), "a.docx").text == "1. a\n2. b\n1. c\n2. d\n"


@pytest.mark.parametrize(
    ("before", "raised", "written"),
    [
        ("10", "6", "10^6"), ("$320", "1", "$320^1"), ("Total", "a", "Total^a"), ("m", "2", "m^2"), ("1", "st", "1st"),
        ("Acme", "TM", "AcmeTM"), ("10", "-3", "10^-3"), ("45", "°", "45°"), ("", "1", "1"), ("see ", "1", "see 1"),
    ],
)  # fmt: skip
def test_raised_marks_never_join_a_number(before, raised, written):
    assert before + write_superscript(before, raised) == written


def test_lowered_digits_are_set_off_from_digits_alone():
    assert write_subscript("H", "2") == "2"
    assert write_subscript("101", "2") == "_2"


@pytest.mark.parametrize("kind", ["document", "template"])
@pytest.mark.parametrize("macros", [False, True])
@pytest.mark.parametrize("name", ["a.docx", "a.docm", "a.dotx"])
def test_variants_of_word_files_are_read(kind, macros, name, save_docx, repack):
    document = docx.Document()
    document.add_paragraph("The rent is due.")
    data = save_docx(document)
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    variant = f"application/vnd.ms-word.{kind}.macroEnabled{'Template' * (kind == 'template')}.main+xml"
    declared = variant if macros else main.replace(".document.main", f".{kind}.main")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        types = archive.read("[Content_Types].xml").decode()
    assert main in types
    changed = repack(data, {"[Content_Types].xml": types.replace(main, declared).encode()})
    assert extract(changed, name).text == "The rent is due.\n"


def test_strict_files_are_read(save_docx):
    document = docx.Document()
    document.add_heading("Rent", 1)
    document.add_paragraph("It is due.")
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(save_docx(document))) as archive, zipfile.ZipFile(out, "w") as strict:
        for name in archive.namelist():
            body = archive.read(name)
            for room in (b"wordprocessingml", b"officeDocument", b"drawingml"):
                body = body.replace(
                    b"http://schemas.openxmlformats.org/%b/2006/" % room, b"http://purl.oclc.org/ooxml/%b/" % room
                )
            strict.writestr(name, body)
    assert extract(out.getvalue(), "a.docx").text == "# Rent\n\nIt is due.\n"


def slide_with(add):
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Figures"
    add(slide.shapes)
    out = io.BytesIO()
    presentation.save(out)
    return out.getvalue()


def test_a_chart_is_a_table_with_its_values():
    def add(shapes):
        data = CategoryChartData()
        data.categories = ["Q1", "Q2"]
        data.add_series("North", (1.5, 2.5))
        data.add_series("South", (3, 4))
        shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(1), Inches(4), Inches(3), data)

    extracted = extract(slide_with(add), "a.pptx")
    assert "|  | North | South |\n| --- | --- | --- |\n| Q1 | 1.5 | 3 |\n| Q2 | 2.5 | 4 |" in extracted.text
    assert extracted.left_out == ()


def test_raised_marks_and_descriptions_on_slides_are_read():
    def add(shapes):
        paragraph = shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]
        paragraph.add_run().text = "5 x 10"
        run = paragraph.add_run()
        run.text = "6"
        run._r.get_or_add_rPr().set("baseline", "30000")
        for description in ("A valve with three taps", "picture1.png", "Ein Bild, KI-generierte Inhalte"):
            shapes.add_picture(io.BytesIO(PICTURE), 0, 0)._element.nvPicPr.cNvPr.set("descr", description)

    text = extract(slide_with(add), "a.pptx").text
    assert "5 x 10^6" in text
    assert "[Picture: A valve with three taps]" in text
    assert "picture1" not in text
    assert "Bild" not in text


PICTURE = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01"
    b"\x00\x00\x02\x02D\x01\x00;"
)


def test_embedded_files_are_members_and_other_objects_are_named(save_docx):
    inner, document = docx.Document(), docx.Document()
    inner.add_paragraph("Inner words.")
    document.add_paragraph("Outer words.")
    room = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    for path, kind, data in (
        ("/word/embeddings/plan.docx", "package", save_docx(inner)),
        ("/word/embeddings/oleObject1.bin", "oleObject", b"\xd0\xcf\x11\xe0" + bytes(600)),
    ):
        part = Part(PackURI(path), "application/octet-stream", data, document.part.package)
        document.part.relate_to(part, room + kind)
    extracted = extract(save_docx(document), "a.docx")
    assert [member.name for member in extracted.members] == ["plan.docx"]
    assert extract(extracted.members[0].data, "plan.docx").text == "Inner words.\n"
    assert extracted.left_out == (LeftOutParts("embedded", ("oleObject1.bin",), 1),)
