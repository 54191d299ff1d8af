from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction import ExtractionLimits, extract
from retrieval.ingest.extraction.sandboxed import extract_in_sandbox, sandbox_limits

MakePdf = Callable[..., bytes]


def test_pages_outline_title_and_words_cut_at_line_ends(make_pdf: MakePdf) -> None:
    data = make_pdf(
        ["Service manual\nThe installa-\ntion of a well-\nknown pump.", "2 Safety\nThis well-known rule."],
        title="Handleiding é",
        outline=[("Safety", 1), ("Not in the text", 1)],
    )
    extracted = extract(data, "manual.pdf")
    assert extracted.media_type == "application/pdf"
    assert extracted.title == "Handleiding é"
    assert [extracted.text[page.start : page.end] for page in extracted.pages] == [
        "Service manual\nThe installation of a well-known pump.",
        "2 Safety\nThis well-known rule.",
    ]
    assert [page.number for page in extracted.pages] == [1, 2]
    assert [(section.title, extracted.page_at(section.start)) for section in extracted.sections] == [("Safety", 2)]
    assert extracted.text[extracted.sections[0].start :].startswith("2 Safety")


def test_running_headers_and_page_numbers_are_dropped_and_nothing_else(make_pdf: MakePdf) -> None:
    pages = [
        f"Merwe manual SM-4471\nIts value is {n * 7}\nTopic {word}\nPage {n} of 5"
        for n, word in enumerate(["a", "b", "c", "d", "e"], 1)
    ]
    text = extract(make_pdf(pages), "m.pdf").text
    assert "Merwe" not in text
    assert "Page" not in text
    kept = [line for line in text.split("\n") if line]
    assert kept == [line for n, word in enumerate("abcde", 1) for line in (f"Its value is {n * 7}", f"Topic {word}")]


def test_short_files_keep_every_line(make_pdf: MakePdf) -> None:
    text = extract(make_pdf(["Same\none", "Same\ntwo", "Same\nthree"]), "m.pdf").text
    assert text.count("Same") == 3


def test_content_decides_over_the_name(make_pdf: MakePdf) -> None:
    assert extract(make_pdf(["Some words."]), "words.txt").media_type == "application/pdf"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"password": "x"}, "report.pdf is password-protected: remove the password and upload it again."),
        ({"image_only": True}, "OCR"),
    ],
)
def test_unreadable_pdfs_say_what_to_do(make_pdf: MakePdf, options: dict[str, object], message: str) -> None:
    with pytest.raises(DocumentRejected, match=message):
        extract(make_pdf(["secret"], **options), "report.pdf")


def test_damaged_and_oversized_pdfs_are_rejected(make_pdf: MakePdf) -> None:
    with pytest.raises(DocumentRejected, match="damaged PDF") as caught:
        extract(make_pdf(["words"])[:200], "report.pdf")
    assert caught.value.__cause__ is not None
    with pytest.raises(DocumentRejected, match="more than 2 pages"):
        extract(make_pdf(["a", "b", "c"]), "report.pdf", limits=ExtractionLimits(max_pages=2))
    with pytest.raises(DocumentRejected, match="more than 5 characters"):
        extract(make_pdf(["many words"]), "report.pdf", limits=ExtractionLimits(max_text_chars=5))


def test_threads_can_read_at_once(make_pdf: MakePdf) -> None:
    """The library for PDF files allows one thread: what reads is in a process of its own."""
    data = make_pdf([f"Page text {n}" for n in range(20)])
    expected = extract(data, "a.pdf").text
    limits = ExtractionLimits()

    def read(_number: int) -> str:
        return extract_in_sandbox(data, "a.pdf", limits=limits, within=sandbox_limits(512, 60, limits)).text

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read, range(8))) == [expected] * 8
