"""Small files of each format, written byte by byte where a library would hide what matters."""

import io
import time
import zipfile

import pytest

from retrieval.documents.extraction import ExtractionLimits
from retrieval.documents.extraction.sandboxed import build_sandbox_limits, extract_in_sandbox
from retrieval.exceptions import DocumentRejected
from retrieval.text import chunking
from retrieval.text.language import detect_language
from tests.support import bombs

LIMITS = ExtractionLimits(max_bytes=30_000_000, max_text_chars=2_000_000, max_pages=500)
WITHIN = build_sandbox_limits(256, 1.5, LIMITS)

"""The left end of a text's base line from the lower left corner, the size of its font, and the text, in points; or what
draws a line."""


def pdf(pages, *, protected=False, title="", outline=(), image_only=False):
    """Return a PDF with one page for each text, one line of it for each of its lines, or for the runs placed on it.

    ``outline`` has (title, page from 0). A ``protected`` file asks for a password.
    """
    first_page = 5
    objects = {}
    kids = " ".join(f"{first_page + 2 * at} 0 R" for at in range(len(pages)))
    first_mark = first_page + 2 * len(pages)
    marks = f" /Outlines {first_mark} 0 R" if outline else ""
    objects[1] = f"<< /Type /Catalog /Pages 2 0 R{marks} >>".encode()
    objects[2] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
    objects[3] = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    objects[4] = b"<< /Title " + _pdf_string(title) + b" >>"
    for at, page in enumerate(pages):
        number = first_page + 2 * at
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {number + 1} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        ).encode()
        content = b"0 0 100 100 re f" if image_only else _pdf_lines(page) if isinstance(page, str) else _pdf_runs(page)
        objects[number + 1] = bombs.stream(content)
    if outline:
        entries = range(first_mark + 1, first_mark + 1 + len(outline))
        objects[first_mark] = f"<< /First {entries[0]} 0 R /Last {entries[-1]} 0 R /Count {len(outline)} >>".encode()
        for number, (name, page_at) in zip(entries, outline, strict=True):
            after = f" /Next {number + 1} 0 R" if number != entries[-1] else ""
            target = f" /Parent {first_mark} 0 R{after} /Dest [{first_page + 2 * page_at} 0 R /Fit] >>"
            objects[number] = b"<< /Title " + _pdf_string(name) + target.encode()
    trailer = b"/Root 1 0 R" + (b" /Info 4 0 R" if title else b"")
    if protected:
        key = b"00" * 32
        trailer += b" /Encrypt << /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >> /ID [<00> <00>]" % (key, key)
    return bombs.pdf(objects, trailer)


def _pdf_lines(page):
    rows = b"".join(b"<%s> Tj T*\n" % line.encode("cp1252").hex().encode() for line in page.split("\n"))
    return b"BT /F1 11 Tf 14 TL 60 740 Td\n" + rows + b"ET"


def _pdf_runs(runs):
    return b"".join(
        run.encode() + b"\n"
        if isinstance(run, str)
        else b"BT /F1 %f Tf %f %f Td <%s> Tj ET\n" % (run[2], *run[:2], run[3].encode("cp1252").hex().encode())
        for run in runs
    )


def _pdf_string(text):
    return b"<%s>" % ("\ufeff" + text).encode("utf-16-be").hex().encode()


def docx_bytes(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def repacked(data, entries):
    """Return a ZIP file with some of its entries replaced or added."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    return bombs.zipped(kept | entries)


def read_within_limits(data, name):
    """Read a hostile file in the sandbox, cut its text, and return the sentence that rejected it, empty if none did.

    Fails if either takes too long, or if the sentence is not readable for people.
    """
    started = time.monotonic()
    rejected = ""
    try:
        extracted = extract_in_sandbox(data, name, limits=LIMITS, job_limits=WITHIN)
    except DocumentRejected as error:
        rejected = str(error)
    # No more than the limit, and what it takes to start a process and end it on a busy machine.
    assert time.monotonic() - started < WITHIN.seconds + 20
    if rejected:
        assert rejected.startswith(name)
        assert rejected.endswith(".")
        assert len(rejected) < 300
        return rejected
    # The worker's own work on the text is linear: a hundredth of the time of anything quadratic.
    started = time.process_time()
    chunking.split_into_chunks(extracted, lambda texts: [len(text) // 4 for text in texts], 254)
    detect_language(extracted.text)
    assert time.process_time() - started < 15
    return ""


@pytest.fixture
def make_pdf():
    return pdf


@pytest.fixture
def save_docx():
    return docx_bytes


@pytest.fixture
def make_zip():
    return bombs.zipped


@pytest.fixture
def repack():
    return repacked


@pytest.fixture
def read_hostile():
    return read_within_limits
