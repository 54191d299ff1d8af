"""Presentations, OpenDocument, books and RTF: headings, lists, tables, slides and notes, in their order."""

import io

import pptx
import pytest
from pptx.util import Inches

from retrieval.documents.extraction import extract
from retrieval.exceptions import DocumentRejected
from retrieval.tables.table_reading import read_tables
from retrieval.text.extracted import LeftOutParts

ODF = " ".join(
    f'xmlns:{prefix}="{address}"'
    for prefix, address in {
        "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
        "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
        "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
        "style": "urn:oasis:names:tc:opendocument:xmlns:style:1.0",
        "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
        "presentation": "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0",
    }.items()
)


def deck():
    presentation = pptx.Presentation()
    layouts = presentation.slide_layouts
    opening = presentation.slides.add_slide(layouts[0])
    opening.shapes.title.text, opening.placeholders[1].text = "Pump plan", "Board meeting"
    goals = presentation.slides.add_slide(layouts[1])
    goals.shapes.title.text = "Goals"
    frame = goals.placeholders[1].text_frame
    frame.text = "Grow sales"
    inner = frame.add_paragraph()
    inner.text, inner.level = "by 10 percent", 1
    goals.notes_slide.notes_text_frame.text = "Mention the warehouse."
    figures = presentation.slides.add_slide(layouts[6])
    table = figures.shapes.add_table(2, 2, Inches(1), Inches(3), Inches(5), Inches(2)).table
    for at, words in enumerate(("Year", "Sales", "2025", "€ 130")):
        table.cell(at // 2, at % 2).text = words
    figures.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1)).text_frame.text = "Above the table"
    hidden = presentation.slides.add_slide(layouts[5])
    hidden.shapes.title.text = "Salaries"
    hidden._element.set("show", "0")
    out = io.BytesIO()
    presentation.save(out)
    return out.getvalue()


def test_a_presentation_is_a_page_a_slide():
    extracted = extract(deck(), "deck.pptx")
    slides = [extracted.text[page.start : page.end].strip() for page in extracted.pages]
    assert slides == [
        "# Pump plan\n\nBoard meeting",
        "# Goals\n\n- Grow sales\n   - by 10 percent\n\n> Notes: Mention the warehouse.",
        "# Slide 3\n\nAbove the table\n\n| Year | Sales |\n| --- | --- |\n| 2025 | € 130 |",
        "",
    ]
    assert [section.title for section in extracted.sections] == ["Pump plan", "Goals", "Slide 3"]
    assert (extracted.title, extracted.left_out) == ("Pump plan", (LeftOutParts("slides", ("4",), 1),))
    assert [row.values for row in read_tables(extracted)[0].rows] == [(2025.0, 130.0)]


def odf(body):
    return f"<office:document-content {ODF}>{body}</office:document-content>".encode()


def test_an_opendocument_text_keeps_headings_lists_and_tables(make_zip):
    cells = "".join(f"<table:table-cell><text:p>{words}</text:p></table:table-cell>" for words in ("Seal", "12"))
    body = (
        '<office:automatic-styles><style:style style:name="P1" style:parent-style-name="Title"/>'
        '<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1" '
        'style:num-suffix="."/>'
        "</text:list-style></office:automatic-styles><office:body><office:text>"
        "<text:tracked-changes><text:p>struck out</text:p></text:tracked-changes>"
        '<text:p text:style-name="P1">Pump manual</text:p><text:h text:outline-level="1">Parts</text:h>'
        "<text:p>A seal<text:s/><text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>of rubber</text:p></text:note-body></text:note>\n  wears.</text:p>"
        '<text:list text:style-name="L1"><text:list-item><text:p>Stop</text:p><text:list><text:list-item>'
        "<text:p>slowly</text:p></text:list-item></text:list></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>Name</text:p></table:table-cell><table:table-cell>"
        f"<text:p>Price</text:p></table:table-cell></table:table-row><table:table-row>{cells}</table:table-row>"
        "</table:table></office:text></office:body>"
    )
    files = {"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": odf(body)}
    extracted = extract(make_zip(files), "manual.odt")
    assert extracted.text == (
        "# Pump manual\n\n## Parts\n\nA seal (of rubber) wears.\n\n1. Stop\n   - slowly\n\n"
        "| Name | Price |\n| --- | --- |\n| Seal | 12 |\n"
    )
    assert (extracted.title, len(read_tables(extracted))) == ("Pump manual", 1)


@pytest.mark.parametrize(
    ("attributes", "is_shown"),
    [
        ("", True),
        ('text:display="true"', True),
        ('text:display="none"', False),
        ('text:display="condition" text:condition="x" text:is-hidden="true"', False),
        ('text:display="condition" text:condition="x"', True),
    ],
)
def test_hidden_sections_are_left_out_and_named(make_zip, attributes, is_shown):
    section = f"<text:section {attributes}><text:p>Draft 44</text:p></text:section>"
    body = f"<office:body><office:text><text:p>Gate 4.</text:p>{section}</office:text></office:body>"
    files = {"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": odf(body)}
    extracted = extract(make_zip(files), "plan.odt")
    assert extracted.text.split() == (["Gate", "4.", "Draft", "44"] if is_shown else ["Gate", "4."])
    assert [each.kind for each in extracted.left_out] == ([] if is_shown else ["words"])


def test_an_opendocument_presentation_is_a_page_a_slide(make_zip):
    def frame(words, of=""):
        kind = f' presentation:class="{of}"' if of else ""
        return f"<draw:frame{kind}><draw:text-box><text:p>{words}</text:p></draw:text-box></draw:frame>"

    body = (
        '<office:automatic-styles><style:style style:name="h" style:family="drawing-page">'
        '<style:drawing-page-properties presentation:visibility="hidden"/></style:style></office:automatic-styles>'
        f"<office:body><office:presentation><draw:page>{frame('Below')}{frame('Goals', 'title')}<draw:g>"
        "<draw:custom-shape><text:p>Sales</text:p></draw:custom-shape></draw:g>"
        "<office:annotation><text:p>Too bold</text:p></office:annotation>"
        f"<presentation:notes>{frame('7', 'page-number')}{frame('Pause', 'notes')}"
        f'</presentation:notes></draw:page><draw:page draw:style-name="h">{frame("Salaries", "title")}</draw:page>'
        "</office:presentation></office:body>"
    )
    files = {"mimetype": b"application/vnd.oasis.opendocument.presentation", "content.xml": odf(body)}
    extracted = extract(make_zip(files), "deck.odp")
    slides = [extracted.text[page.start : page.end].strip() for page in extracted.pages]
    assert slides == ["# Goals\n\nBelow\n\nSales\n\n> Notes: Pause", ""]
    assert (extracted.title, extracted.left_out) == (
        "Goals",
        (LeftOutParts("slides", ("2",), 1), LeftOutParts("comments", (), 1)),
    )


def book(chapters, *, more=None):
    items = "".join(f'<item id="{n}" href="{n}" media-type="application/xhtml+xml"/>' for n in sorted(chapters))
    spine = "".join(f'<itemref idref="{n}"/>' for n in chapters)
    return {
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": b'<container><rootfiles><rootfile full-path="OPS/p.opf"/></rootfiles></container>',
        "OPS/p.opf": (
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
            "<dc:title>The pump</dc:title><dc:language>nl-NL</dc:language></metadata><manifest>"
            f'{items}<item id="toc" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest>'
            f"<spine>{spine}</spine></package>"
        ).encode(),
        "OPS/toc.ncx": (
            b'<ncx><navMap><navPoint><navLabel><text>Of seals</text></navLabel><content src="b.xhtml"/></navPoint>'
            b'<navPoint><navLabel><text>Of oil</text></navLabel><content src="b.xhtml#oil"/></navPoint></navMap></ncx>'
        ),
        **{
            f"OPS/{name}": (
                f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{body}</body></html>'.encode()
            )
            for name, body in chapters.items()
        },
        **(more or {}),
    }


def test_a_book_is_read_in_the_order_of_its_spine(make_zip):
    chapters = {"z.xhtml": "<h1>Pumps</h1><p>They hum.</p>", "b.xhtml": "<p>A seal wears.</p>"}
    extracted = extract(make_zip(book(chapters)), "pump.epub")
    assert extracted.text == "# Pumps\n\nThey hum.\n\n# Of seals\n\nA seal wears.\n"
    assert extracted.title == "The pump"
    locked = {"META-INF/encryption.xml": b'<encryption><CipherReference URI="OPS/b.xhtml"/></encryption>'}
    with pytest.raises(DocumentRejected, match=r"pump.epub is protected against copying \(DRM\)"):
        extract(make_zip(book(chapters, more=locked)), "pump.epub")


def test_rtf_keeps_headings_lists_and_tables():
    source = (
        rb"{\rtf1\ansi\ansicpg1252\uc1{\info{\title Manual}}{\stylesheet{\ql Normal;}{\s1\outlinelevel0 heading 1;}"
        rb"{\s2\sbasedon0 Heading 2;}}\pard\s1\outlinelevel1 Parts\par\pard Caf\'e9 \u8364?\par"
        rb"{\listtext\'b7\tab}\ilvl0 Seal\par{\listtext 1.\tab}\ilvl1 rubber\par"
        rb"\trowd\cellx1\cellx2\intbl Name\cell Price\cell\row\trowd\cellx1\cellx2\intbl Seal\cell 12\cell\row"
        rb"\pard\s2 2 seals\par\pard At C:\\s1\par}"
    )
    extracted = extract(source, "manual.rtf")
    assert extracted.text == (
        "## Parts\n\nCafé €\n\n- Seal\n   1. rubber\n\n| Name | Price |\n| --- | --- |\n| Seal | 12 |\n\n"
        "## 2 seals\n\nAt C:\\s1\n"
    )
    assert [(section.title, section.level) for section in extracted.sections] == [("Parts", 2), ("2 seals", 2)]
    assert extracted.title == "Manual"
    with pytest.raises(DocumentRejected, match=r"manual.rtf is damaged, its end is missing"):
        extract(source[:200], "manual.rtf")


def test_a_chapter_that_is_no_xml_is_compared_too(make_zip):
    chapters = {"a.xhtml": "<h1>Pumps</h1><p>They hum.<br> <span style='display:none'>Gate 12</span></p>"}
    extracted = extract(make_zip(book(chapters)), "pump.epub")
    assert "They hum." in extracted.text
    assert {each.kind for each in extracted.left_out} == {"words"}
