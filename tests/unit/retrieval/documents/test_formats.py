"""A format is one module and one registration; everything that depends on formats follows."""

import importlib
import sys
from collections import Counter

import pytest
from django.contrib.auth.models import AnonymousUser

from retrieval.admin.document_forms import DocumentForm, UploadForm
from retrieval.documents import formats
from retrieval.documents.extraction import ExtractionLimits, extract
from retrieval.documents.extraction.sandboxed import build_sandbox_limits, extract_in_sandbox
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document, DocumentText
from retrieval.viewer.page import build_viewer_context
from tests.support import formats_table

TOY = "tests.unit.retrieval.documents.toy_format"
TOY_BYTES = b"TOY1wIND UP *here*"


@pytest.fixture
def _toy_format(monkeypatch):
    monkeypatch.setattr(formats, "_formats", [*formats._formats])
    importlib.import_module(TOY)
    yield
    del sys.modules[TOY]


@pytest.mark.usefixtures("_toy_format")
def test_one_registration_is_all_that_a_new_format_needs():
    assert formats.detect_format(TOY_BYTES, "a.bin").kind == "a toy"
    with pytest.raises(DocumentRejected, match="a.toy is not a toy although its name says so"):
        formats.detect_format(b"words", "a.toy")
    assert extract(TOY_BYTES, "a.toy").text == "# a.toy\n\nWind up *HERE*\n"

    limits = ExtractionLimits()
    extracted = extract_in_sandbox(TOY_BYTES, "a.toy", limits=limits, job_limits=build_sandbox_limits(512, 20, limits))
    assert (extracted.media_type, extracted.title) == ("application/x-toy", "Toy")

    document = Document(source="a.toy", media_type=extracted.media_type)
    page = build_viewer_context(document, DocumentText(text=extracted.text, sections=[], pages=[]), {})
    assert "<em>HERE</em>" in "".join(page["parts"])
    assert not page["is_code"]

    field = UploadForm(user=AnonymousUser())["file"]
    assert ".toy" in str(field)
    assert ".toy" in str(DocumentForm()["replacement"])
    assert str(field.help_text).startswith("TOY, Markdown, HTML")
    with pytest.raises(DocumentRejected, match=r"a.bmp is a bitmap image; supported are TOY"):
        formats.detect_format(b"words", "a.bmp")


@pytest.mark.parametrize("media_type", ["", "application/x-unknown"])
def test_a_document_of_an_unknown_format_is_shown_as_text(media_type):
    page = build_viewer_context(Document(source="a.unknown", media_type=media_type), DocumentText(text="A book.\n"), {})
    assert not page["is_code"]
    assert page["parts"] == ["A book.\n"]


def test_no_two_formats_share_an_extension_or_a_media_type():
    extensions = [extension for known in formats._formats for extension in known.extensions]
    media_types = [known.media_type for known in formats.read_formats()]
    assert [each for each, times in Counter(extensions).items() if times > 1] == [], "These are of several formats."
    assert [each for each, times in Counter(media_types).items() if times > 1] == [], "These are of several formats."


def test_the_page_on_formats_lists_what_is_registered():
    page = formats_table.PAGE.read_text()
    assert formats_table.written(page) == page, "run `python -m tests.support.formats_table`"
    assert formats_table.table() in page
    assert formats_table.refused() in page
