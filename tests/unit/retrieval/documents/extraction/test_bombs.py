"""The bomb zoo: each hostile file is read or rejected within its limits, in a sentence that a person understands."""

import re
import time

import pytest

from retrieval.documents import formats
from retrieval.documents.extraction import ExtractionLimits
from retrieval.documents.extraction.sandboxed import build_sandbox_limits, extract_in_sandbox
from retrieval.exceptions import DocumentRejected
from retrieval.media_types import HTML, PLAIN
from tests.support import bombs

# On a busy machine, every file may reach this limit before its own.
TIME_LIMIT = "took longer than 1.5 s to be read"
# These sentences reject the files that must be rejected.
SENTENCES = {
    "pdf_nested_forms": "needed more than 256 MiB of memory",
    "pdf_endless": TIME_LIMIT,
    "pdf_many_pages": "has more than 500 pages",
    "docx_zip_bomb": "unpacks to far more than a document holds",
    "zip_huge_directory": "is an archive of more than 20,000 files: save it again in its program",
    "html_deep": "is nested more deeply than HTML can be read",
    "csv_columns": "holds more than 2,000,000 characters of text",
}


@pytest.mark.parametrize("species", bombs.BOMBS)
def test_a_bomb_is_read_or_rejected_within_its_limits(read_hostile, species):
    bomb = bombs.BOMBS[species]
    rejected = read_hostile(bomb.made(small=True), bomb.file_name)
    assert bool(rejected) or species not in SENTENCES
    if rejected:
        assert re.search(f"{SENTENCES.get(species, '')}|{TIME_LIMIT}", rejected)


def test_a_file_of_much_text_and_little_memory_is_rejected_for_its_memory():
    data = bombs.BOMBS["text_one_line"].make(10)
    with pytest.raises(DocumentRejected, match="needed more than 20 MiB of memory to be read"):
        extract_in_sandbox(
            data, "a.txt", limits=ExtractionLimits(), job_limits=build_sandbox_limits(20, 10, ExtractionLimits())
        )


@pytest.mark.parametrize(
    "begin",
    [
        b"<!---->" * 500 + b"x",
        b"<!--" * 1_000,
        b"<?xml" * 800,
        b" " * 4_000 + b"<html",
        b"<!-- -->\n" * 400 + b"<!doctype",
    ],
)
def test_content_is_detected_in_linear_time(begin):
    """Detection runs inside the request that brings the file."""
    started = time.process_time()
    assert formats.detect_format(begin, "a.txt").media_type == PLAIN
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "begin", [b"<html>", b"\xef\xbb\xbf <!DOCTYPE html>", b"<?xml version='1.0'?>\n<!-- a --><!----> <HTML lang=en>"]
)
def test_a_page_without_a_name_is_still_recognised(begin):
    assert formats.detect_format(begin + b"words", "page.txt").media_type == HTML


def test_a_directory_of_many_files_is_counted_before_it_is_read():
    data = bombs.zip_huge_directory(300_000)
    started = time.process_time()
    with pytest.raises(DocumentRejected, match="more than 20,000 files"):
        formats.detect_format(data, "a.docx")
    assert time.process_time() - started < 1
