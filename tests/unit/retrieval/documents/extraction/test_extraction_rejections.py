"""Media types, encodings, and what is turned away with which words."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.documents.extraction import ExtractionLimits, extract
from retrieval.documents.extraction.decoding import make_canonical_text
from retrieval.exceptions import DocumentRejected

DUTCH = "Één café in Coördinatie – ‘vóór’ de reünie; het beëindigen van de geïnde bedragen kost € 5."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "utf-32"])
def test_text_is_read_whatever_its_encoding(encoding):
    assert extract(DUTCH.encode(encoding), "a.txt").text == DUTCH


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_plain_english_without_a_byte_order_mark_is_read(encoding):
    assert extract("The pump weighs 3450 grams.".encode(encoding), "a.txt").text == "The pump weighs 3450 grams."


def test_a_few_damaged_bytes_do_not_change_the_encoding():
    assert extract((DUTCH * 20).encode() + b"\xff" + b" end", "a.txt").text == DUTCH * 20 + "\ufffd end"


def test_invisible_characters_are_removed():
    assert make_canonical_text("a\u202eb\U000e0041\U000e0042c\x00d\u00ade") == "abcde"
    assert make_canonical_text(make_canonical_text("e\u0301\r\n")) == "é\n"


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("site.key", b"The key of the site hangs at gate 4.", "text/plain"),
        ("id.pub", b"The public house opens at nine.", "text/plain"),
        ("letter.asc", b"Dear Ann, the crane comes on Monday.", "text/plain"),
        ("notes", b"Just words.", "text/plain"),
        ("a.rs", b"fn main() {}", "text/x-rust"),
        ("README.MD", b"# Words", "text/markdown"),
        ("fake.txt", b"%PDF is what this sentence is about.", "text/plain"),
        ("fake.txt", b"RIFF is a container, and the ftyp box names what an MP4 is.", "text/plain"),
    ],
)
def test_the_media_type(name, data, media_type):
    assert extract(data, name).media_type == media_type


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"", "a.txt is empty"),
        ("a.txt", b" \n\t\n", "a.txt holds no text"),
        ("a.txt", b"\x00\x01\x02\x03abc\x00\x07\x05" * 20, "a.txt holds binary data"),
        ("a.pdf", b"Just words.", "a.pdf is not a PDF although its name says so"),
        ("a.docx", b"Just words.", "a.docx is not a Word document although its name says so"),
        ("a.txt", b"\x89PNG\r\n\x1a\n....", "a.txt could not be read as a PNG image"),
        ("a.xlsx", b"whatever", "a.xlsx is not an Excel workbook although its name says so"),
        (
            "a.doc",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
            "a.doc is an Office file of another program: export it",
        ),
        ("a.docx", b"PK\x03\x04" + bytes(60), "a.docx is a damaged ZIP or Office file"),
        (
            "a.docx",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100) + "EncryptedPackage".encode("utf-16-le"),
            "a.docx is password-protected",
        ),
        ("a.bin", b"BM\x36\x10\x0e" + bytes(60), "a.bin is a bitmap image"),
        ("a.jpg", b"\0\0\0\x24ftypheic" + bytes(60), "a.jpg is a HEIC or AVIF image"),
        ("a.bin", b"\0\0\0\x1cftypisom" + bytes(60), "a.bin is an audio or video file"),
        (
            "a.pages",
            b"PK\x05\x06" + bytes(18),
            "a.pages is an Apple Pages document: export it as Word or PDF and upload",
        ),
        ("a.key", b"PK\x05\x06" + bytes(18), "a.key is an Apple Keynote presentation: export it as PowerPoint or PDF"),
        ("a.pub", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a.pub is a Publisher file: export it as PDF"),
        ("a.vsdx", b"w", "a.vsdx is a Visio drawing: export it as PDF"),
        ("..\\..\\x\n<b>.doc", b"w", "<b>.doc is not an old Word document although its name says so"),
    ],
)
def test_what_is_turned_away_says_why(name, data, message):
    with pytest.raises(DocumentRejected) as caught:
        extract(data, name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ": " in str(caught.value)


def test_an_archive_is_read_as_what_it_holds(make_zip):
    with pytest.raises(DocumentRejected, match="a.docx could not be read as an Excel workbook"):
        extract(make_zip({"xl/workbook.xml": b"x"}), "a.docx")
    assert [member.name for member in extract(make_zip({"a.txt": b"x"}), "a.docx").members] == ["a.txt"]


def test_size_limits():
    with pytest.raises(DocumentRejected, match="larger than 1 MB"):
        extract(b"x" * 1_000_001, "a.txt", limits=ExtractionLimits(max_bytes=1_000_000))
    with pytest.raises(DocumentRejected, match="more than 10 characters"):
        extract(b"a" * 11, "a.txt", limits=ExtractionLimits(max_text_chars=10))


@pytest.mark.parametrize(
    "line", ["[" * 200_000, ":" * 200_000, "#" * 200_000, "*" * 200_000, "> " * 50_000, "a b " * 50_000, "``" * 100_000]
)
@pytest.mark.parametrize(
    "name",
    ["a.md", "a.txt", "a.rst", "a.java", "a.csv", "a.html", "a.adoc", "a.tex", "a.ipynb", "a.fb2", "a.srt"],
)
def test_hostile_lines_take_no_time(name, line):
    begun = time.perf_counter()
    with contextlib.suppress(DocumentRejected):  # A field of a table may be too long; what counts here is the time.
        extract(("x y\n" + line + "\n" + "-" * 1000 + "\n").encode(), name)
    assert time.perf_counter() - begun < 5


NAMES = st.sampled_from(
    [
        "a.md",
        "a.txt",
        "a.rst",
        "a.csv",
        "a.html",
        "a.py",
        "a.json",
        "a.pdf",
        "a.docx",
        "a",
        "a.adoc",
        "a.org",
        "a.tex",
        "a.ipynb",
        "a.rtf",
        "a.vtt",
        "a.doc",
    ]
)
STARTS = st.sampled_from([b"", b"%PDF-1.4\n", b"PK\x03\x04", b"<html><body>", b"---\n", b"\xff\xfe", b"\xef\xbb\xbf"])


@given(name=NAMES, start=STARTS, body=st.one_of(st.binary(max_size=300), st.text(max_size=200).map(str.encode)))
def test_any_bytes_give_canonical_text_or_a_clear_no(name, start, body):
    try:
        extracted = extract(start + body, name)
    except DocumentRejected as error:
        message = str(error)
    else:
        message = ""
    assert not message or name in message
    if message:
        return
    text = extracted.text
    assert "\x00" not in text
    assert make_canonical_text(text) == text
    assert text.strip()
    for section in extracted.sections:
        assert 0 <= section.start < len(text)
        assert section.title
        assert section.level >= 1
    ends = [0]
    for span in extracted.protected:
        assert ends[-1] <= span.start < span.end <= len(text)
        ends.append(span.end)
