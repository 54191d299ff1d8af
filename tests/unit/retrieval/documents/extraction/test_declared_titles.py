"""Titles that a program declared are not shown, and the name of a site is cut from the titles of its pages."""

import pytest

from retrieval.documents.extraction import extract
from retrieval.text.extracted import read_declared_title

PROGRAMS = [
    "(anonymous)",
    "Untitled",
    "untitled document",
    "Microsoft Word - report final.docx",
    "Microsoft Word - Bezoekuren",
    "PowerPoint Presentation",
    "PowerPoint-presentatie",
    "Document1",
    "Slide 1",
    "LibreOffice Writer - brief",
    "Unknown",
    "report.pdf",
    "No title",
    "Title",
    "",
]
PEOPLE = [
    "Anonymous sources in journalism",
    "Document control",
    "Title insurance",
    "Microsoft Word for beginners",
    "Untitled: a play",
    "Presentation skills",
    "Jaarverslag 2025",
    "Version 2.pdf explained",
]


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_title_that_a_program_wrote_is_none(title):
    assert read_declared_title(title) == ""


@pytest.mark.parametrize("title", PEOPLE)
def test_a_title_that_somebody_wrote_stays(title):
    assert read_declared_title(title) == title


@pytest.mark.parametrize(
    ("title", "heading", "shown"),
    [
        ("Questions — Borg - Deduplicating Archiver 1.2.4 documentation", "Questions", "Questions"),
        ("Visiting hours | St Mary's", "Visiting hours", "Visiting hours"),
        ("Pumps - Merwe", "Pumps", "Pumps"),
        ("Pump-driven circuits", "Pump", "Pump-driven circuits"),
        ("Pumps and valves", "Pumps", "Pumps and valves"),
        ("Our catalogue", "Pumps", "Our catalogue"),
        ("untitled", "Pumps", "Pumps"),
    ],
)
def test_the_name_of_the_site_is_cut_from_a_page(title, heading, shown):
    page = f"<html><head><title>{title}</title></head><body><h1>{heading}</h1><p>Some words.</p></body></html>"
    assert extract(page.encode(), "page.html").title == shown
