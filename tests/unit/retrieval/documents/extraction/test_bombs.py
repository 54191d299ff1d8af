"""The bomb zoo: each hostile file is read or rejected within its limits, in a sentence that a person understands."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial

import pytest

from retrieval.documents import formats
from retrieval.documents.extraction import ExtractionLimits
from retrieval.documents.extraction.sandboxed import extract_in_sandbox, sandbox_limits
from retrieval.exceptions import DocumentRejected
from tests.support import bombs

# Bombs that are as bad when they are smaller, for a suite that is to be quick.
SMALLER = {
    bombs.pdf_deflate_bomb: 40,
    bombs.docx_zip_bomb: 50,
    bombs.docx_list_numbers: 2_000,
    bombs.docx_empty_paragraphs: 30_000,
    bombs.zip_huge_directory: 30_000,
    bombs.xlsx_merged_areas: 300,
    bombs.xlsx_many_cells: 2_000,
    bombs.rtf_groups: 50_000,
    bombs.rtf_controls: 50_000,
    bombs.mail_headers: 20_000,
    bombs.mail_parts: 1_000,
    bombs.mail_nested: 1_000,
    bombs.zip_zeros: 50,
    bombs.zip_many_files: 3_000,
    bombs.html_empty_elements: 20_000,
    bombs.html_attributes: 100_000,
    bombs.markdown_lists: 600,
    bombs.markdown_lines_of_quotes: 400,
    bombs.markdown_table: 2_000,
    bombs.csv_columns: 20_000,
    bombs.csv_field: 12,
    bombs.json_lines: 60_000,
    bombs.text_one_line: 1,
    bombs.text_one_word: 1,
    bombs.text_zeros: 4,
    bombs.text_utf16_zeros: 200_000,
    bombs.text_full_stops: 100_000,
    bombs.rst_adornments: 4_000,
    bombs.c_methods: 1_000,
}


# What is said of those that must be rejected.
SENTENCES = {
    "pdf_nested_forms": "took longer than 1.5 s to be read|needed more than 256 MiB of memory",
    "pdf_endless": "took longer than 1.5 s to be read",
    "pdf_many_pages": "has more than 500 pages",
    "docx_zip_bomb": "unpacks to far more than a document holds",
    "zip_huge_directory": "is an archive of more than 20,000 files: save it again in its program",
    "html_attributes": "has a tag with more than 20,000 attributes",
    "html_deep": "is nested more deeply than HTML can be read",
    "csv_columns": "holds more than 2,000,000 characters of text",
}


def made(function: Callable[..., bytes]) -> bytes:
    size = SMALLER.get(function)
    return function() if size is None else partial(function, size)()


def test_the_zoo_is_large() -> None:
    assert len(bombs.BOMBS) >= 40
    assert {name.rpartition(".")[2] for name, _ in bombs.BOMBS.values()} >= {
        "pdf", "docx", "xlsx", "ods", "odt", "rtf", "eml", "zip", "html", "md", "csv",
        "json", "jsonl", "txt", "rst", "c",
    }  # fmt: skip


@pytest.mark.parametrize("species", bombs.BOMBS)
def test_a_bomb_is_read_or_rejected_within_its_limits(read_hostile: Callable[[bytes, str], str], species: str) -> None:
    name, function = bombs.BOMBS[species]
    rejected = read_hostile(made(function), name)
    assert bool(rejected) or species not in SENTENCES
    if rejected:
        assert re.search(SENTENCES.get(species, ""), rejected)


def test_a_file_of_much_text_and_little_memory_is_rejected_for_its_memory() -> None:
    data = bombs.text_one_line(10)
    with pytest.raises(DocumentRejected, match="needed more than 20 MiB of memory to be read"):
        extract_in_sandbox(data, "a.txt", limits=ExtractionLimits(), within=sandbox_limits(20, 10, ExtractionLimits()))


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
def test_content_is_detected_in_linear_time(begin: bytes) -> None:
    """Detection runs inside the request that brings the file."""
    started = time.process_time()
    assert formats.detect(begin, "a.txt").media_type == formats.PLAIN
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "begin",
    [b"<html>", b"\xef\xbb\xbf <!DOCTYPE html>", b"<?xml version='1.0'?>\n<!-- a --><!----> <HTML lang=en>"],
)
def test_a_page_without_a_name_is_still_recognised(begin: bytes) -> None:
    assert formats.detect(begin + b"words", "page.txt").media_type == formats.HTML


def test_a_directory_of_many_files_is_counted_before_it_is_read() -> None:
    data = bombs.zip_huge_directory(300_000)
    started = time.process_time()
    with pytest.raises(DocumentRejected, match="more than 20,000 files"):
        formats.detect(data, "a.docx")
    assert time.process_time() - started < 1
