import struct

import docx
import docx.document
import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from retrieval.documents.extraction import extract
from retrieval.exceptions import DocumentRejected


def sample():
    document = docx.Document()
    document.add_heading("Warranty", 0)
    document.add_paragraph("In force since January.")
    document.add_heading("Periods", 1)
    document.add_paragraph("first", style="List Bullet")
    document.add_paragraph("second", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, words in zip(table._cells, ["Group", "Years", "Pump | wet", "3"], strict=True):
        cell.text = words
    document.add_heading("Details", 2)
    document.add_paragraph("Tail.")
    document.core_properties.title = ""
    document.core_properties.language = "nl-NL"
    return document


def test_a_document_becomes_markdown_in_order(save_docx):
    extracted = extract(save_docx(sample()), "w.docx")
    assert extracted.text == (
        "# Warranty\n\nIn force since January.\n\n## Periods\n\n- first\n- second\n\n"
        "| Group | Years |\n| --- | --- |\n| Pump \\| wet | 3 |\n\n### Details\n\nTail.\n"
    )
    assert [(section.level, section.title) for section in extracted.sections] == [
        (1, "Warranty"),
        (2, "Periods"),
        (3, "Details"),
    ]
    for section in extracted.sections:
        assert extracted.text[section.start :].startswith("#" * section.level + " " + section.title)
    assert [extracted.text[span.start : span.end][:9] for span in extracted.protected] == ["| Group |"]
    assert extracted.title == "Warranty"


def test_the_entries_of_a_table_of_contents_are_left_out(save_docx):
    document = sample()
    style = document.styles.add_style("toc 1", WD_STYLE_TYPE.PARAGRAPH)
    document.paragraphs[0].insert_paragraph_before("Periods\t2", style)
    assert "Periods\t2" not in extract(save_docx(document), "w.docx").text


def test_tracked_insertions_and_content_controls_are_read(save_docx):
    document = sample()
    w = nsdecls("w")
    paragraph = document.paragraphs[1]._p
    paragraph.append(parse_xml(f"<w:ins {w} w:id='1' w:author='a'><w:r><w:t> Inserted.</w:t></w:r></w:ins>"))
    control = parse_xml(f"<w:sdt {w}><w:sdtContent><w:p><w:r><w:t>Controlled.</w:t></w:r></w:p></w:sdtContent></w:sdt>")
    document.element.body.insert(1, control)
    text = extract(save_docx(document), "w.docx").text
    assert "In force since January. Inserted." in text
    assert text.startswith("# Warranty\n\nControlled.\n\nIn force")


def test_a_bomb_whose_directory_lies_is_rejected(save_docx, repack):
    size = 60_000_000
    bomb = repack(save_docx(sample()), {"word/media/zeros.bin": bytes(size)})
    lying = bomb.replace(struct.pack("<I", size), struct.pack("<I", 10))
    assert lying != bomb
    with pytest.raises(DocumentRejected, match=r"b\.docx"):
        extract(lying, "b.docx")


def test_declared_entities_are_rejected_and_never_expanded(save_docx, repack):
    xml = b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><d>&b;</d>'
    across = (1 << 20) - len(b'<?xml version="1.0"?><!---->') - 4
    for padding in (b"", b"<!--" + b"x" * across + b"-->"):
        data = repack(save_docx(sample()), {"word/document.xml": xml.replace(b"<!DOC", padding + b"<!DOC")})
        with pytest.raises(DocumentRejected, match="XML entities"):
            extract(data, "e.docx")


def test_broken_xml_names_the_format_and_chains_the_cause(save_docx, repack):
    with pytest.raises(DocumentRejected, match="could not be read as a Word document") as caught:
        extract(repack(save_docx(sample()), {"word/document.xml": b"<w:document"}), "e.docx")
    assert caught.value.__cause__ is not None


MERGED = [
    "| Region | Product | 2023 Units | 2023 Sold |",
    "| --- | --- | --- | --- |",
    "| North | Pumps | 12 | 7 |",
    "| North | Valves | 3 | 1 |",
]


def test_merged_cells_stand_in_their_columns(save_docx):
    """In Word and on web pages, a name over two columns precedes both names, one over two rows is in both."""
    document = docx.Document()
    table = document.add_table(4, 4)
    for column, text in enumerate(["Region", "Product"]):
        table.cell(0, column).merge(table.cell(1, column)).text = text
    table.cell(0, 2).merge(table.cell(0, 3)).text = "2023"
    table.cell(2, 0).merge(table.cell(3, 0)).text = "North"
    for row, texts in enumerate([["Units", "Sold"], ["12", "7"], ["3", "1"]], start=1):
        for column, text in enumerate(texts, start=2):
            table.cell(row, column).text = text
    table.cell(2, 1).text, table.cell(3, 1).text = "Pumps", "Valves"
    assert extract(save_docx(document), "a.docx").text.splitlines() == MERGED
    page = (
        "<table><tr><th rowspan=2>Region<th rowspan=2>Product<th colspan=2>2023<tr><th>Units<th>Sold"
        "<tr><td rowspan=2>North<td>Pumps<td>12<td>7<tr><td>Valves<td>3<td>1</table>"
    )
    lines = extract(f"<html><body><p>Words.</p>{page}</body></html>".encode(), "a.html").text.splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("| ")]
    expected = [[cell.strip() for cell in line.strip("| ").split("|")] for line in MERGED]
    assert [row for row in rows if "---" not in row[0]] == [row for row in expected if "---" not in row[0]]
