from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import docx
import docx.document
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction import ExtractionLimits, extract

Save = Callable[[docx.document.Document], bytes]
Repack = Callable[[bytes, dict[str, bytes]], bytes]


def sample() -> docx.document.Document:
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


def test_a_document_becomes_markdown_in_order(save_docx: Save) -> None:
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
    assert (extracted.title, extracted.language_hint) == ("Warranty", "nl")


def test_tracked_insertions_and_content_controls_are_read(save_docx: Save) -> None:
    document = sample()
    w = nsdecls("w")
    paragraph: Any = document.paragraphs[1]._p
    paragraph.append(parse_xml(f"<w:ins {w} w:id='1' w:author='a'><w:r><w:t> Inserted.</w:t></w:r></w:ins>"))
    control = parse_xml(f"<w:sdt {w}><w:sdtContent><w:p><w:r><w:t>Controlled.</w:t></w:r></w:p></w:sdtContent></w:sdt>")
    document.element.body.insert(1, control)
    text = extract(save_docx(document), "w.docx").text
    assert "In force since January. Inserted." in text
    assert text.startswith("# Warranty\n\nControlled.\n\nIn force")


def test_content_decides_over_the_name(save_docx: Save) -> None:
    assert extract(save_docx(sample()), "w.bin").media_type.endswith("wordprocessingml.document")


def test_a_bomb_is_rejected_by_its_directory(save_docx: Save, repack: Repack) -> None:
    bomb = repack(save_docx(sample()), {"word/media/zeros.bin": bytes(60_000_000)})
    assert len(bomb) < 200_000
    with pytest.raises(DocumentRejected, match="unpacks to far more"):
        extract(bomb, "b.docx")


def test_a_bomb_whose_directory_lies_is_rejected(save_docx: Save, repack: Repack) -> None:
    size = 60_000_000
    bomb = repack(save_docx(sample()), {"word/media/zeros.bin": bytes(size)})
    lying = bomb.replace(struct.pack("<I", size), struct.pack("<I", 10))
    assert lying != bomb
    with pytest.raises(DocumentRejected, match=r"b\.docx"):
        extract(lying, "b.docx")


def test_the_directory_alone_is_enough(save_docx: Save, repack: Repack) -> None:
    data = repack(save_docx(sample()), {"word/media/small.bin": bytes(12_345)})
    with pytest.raises(DocumentRejected, match="unpacks to far more"):
        extract(data.replace(struct.pack("<I", 12_345), struct.pack("<I", 3_000_000_000)), "b.docx")


def test_the_counted_size_holds_too(save_docx: Save) -> None:
    with pytest.raises(DocumentRejected, match="unpacks to far more"):
        extract(save_docx(sample()), "b.docx", limits=ExtractionLimits(max_uncompressed_bytes=1000))


def test_declared_entities_are_rejected_and_never_expanded(save_docx: Save, repack: Repack) -> None:
    xml = b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><d>&b;</d>'
    across = (1 << 20) - len(b'<?xml version="1.0"?><!---->') - 4
    for padding in (b"", b"<!--" + b"x" * across + b"-->"):
        data = repack(save_docx(sample()), {"word/document.xml": xml.replace(b"<!DOC", padding + b"<!DOC")})
        with pytest.raises(DocumentRejected, match="XML entities"):
            extract(data, "e.docx")


def test_broken_xml_names_the_format_and_chains_the_cause(save_docx: Save, repack: Repack) -> None:
    with pytest.raises(DocumentRejected, match="could not be read as a Word document") as caught:
        extract(repack(save_docx(sample()), {"word/document.xml": b"<w:document"}), "e.docx")
    assert caught.value.__cause__ is not None
