"""Scans: pages that are pictures are recognised once, shown with their words marked, and said to be so."""

import io

import pytest
from django.urls import reverse
from PIL import Image, ImageDraw, ImageFont

from retrieval.documents import ingestion, submission
from retrieval.documents.recognition import pages
from retrieval.models import Document, DocumentText, RecognisedPage

pytestmark = pytest.mark.django_db
needs_engine = pytest.mark.skipif(not pages.list_configured_languages(), reason="Tesseract is not installed")

WORDS = ["Maintenance of the pump", "The seal of the pump is changed every", "three years by a mechanic."]
MORE = ["The filter of the pump is cleaned", "every month with warm water."]


def draw(lines, turned=0.0):
    image = Image.new("L", (1240, 700), 255)
    for at, line in enumerate(lines):
        ImageDraw.Draw(image).text((120, 120 + 90 * at), line, font=ImageFont.load_default(44), fill=0)
    return image.rotate(turned, fillcolor=255, resample=Image.Resampling.BICUBIC)


def scan(*pictures):
    out = io.BytesIO()
    pictures[0].save(out, "PDF", save_all=True, append_images=pictures[1:], resolution=150)
    return out.getvalue()


def read(collection, name, data):
    document = submission.submit(collection, name, data).document
    ingestion.ingest_document(document.pk, takes_turns=True)
    document.refresh_from_db()
    return document


@needs_engine
def test_a_scan_is_recognised_marked_and_warned_of(collection, client):
    document = read(collection, "scan.pdf", scan(draw(WORDS, turned=2.0), draw(MORE)))
    assert (document.status, document.error) == (Document.Status.READY, "")
    served = DocumentText.objects.get(document=document)
    assert "The seal of the pump is changed every\nthree years by a mechanic." in served.text
    assert [number for number, confidence in served.recognised if confidence > 80] == [1, 2]
    start = served.text.index("every month")
    query = {"start": start, "end": start + len("every month with warm water.")}
    printed = client.get(reverse("retrieval:document", args=[document.pk]), query).context["printed"]
    assert printed["number"] == 2
    (box,) = printed["layout"].boxes
    # The second line of the picture: 120 of 1,240 pixels from the left, about 220 of 700 from the top.
    assert 800 < box[0] < 1_150
    assert 2_800 < box[1] < 3_500
    assert "confidence" in printed["recognised"]
    RecognisedPage.objects.filter(number=2).update(confidence=41.0)
    DocumentText.objects.filter(pk=served.pk).update(recognised=[[1, 93.0], [2, 41.0]])
    shown = client.get(reverse("retrieval:document", args=[document.pk]), {"page": 2}).content.decode()
    assert "a confidence of 41 % only" in shown


@needs_engine
def test_no_page_is_recognised_twice(collection, settings, monkeypatch):
    """The worker's turn ends, or the worker dies, between two pages; the first page is done."""
    recognised = []
    recognise = pages._recognise_page

    def counted(content_hash, data, number, *args, **options):
        if recognised and settings.OCR_TURN_SECONDS:
            raise pages.sandbox.JobCancelled("Others wait.")
        recognised.append(number)
        return recognise(content_hash, data, number, *args, **options)

    monkeypatch.setattr(pages, "_recognise_page", counted)
    data = scan(draw(WORDS), draw(MORE))
    document = read(collection, "scan.pdf", data)
    assert (document.status, document.attempts, recognised) == (Document.Status.PENDING, 0, [1])
    settings.OCR_TURN_SECONDS = 0
    for source in ("scan.pdf", "copy.pdf"):
        document = submission.submit(collection, source, data).document
        ingestion.ingest_document(document.pk)
        document.refresh_from_db()
        assert (document.status, recognised) == (Document.Status.READY, [1, 2])
    Document.objects.get(source="scan.pdf").delete()
    assert RecognisedPage.objects.count() == 2
    Document.objects.get(source="copy.pdf").delete()
    assert not RecognisedPage.objects.exists()


@needs_engine
@pytest.mark.django_db(transaction=True)
def test_a_picture_is_a_document(collection, client):
    out = io.BytesIO()
    draw(WORDS).save(out, "PNG")
    document = read(collection, "photo.png", out.getvalue())
    assert (document.status, document.media_type) == (Document.Status.READY, "image/png")
    assert client.get(reverse("retrieval:page_picture", args=[document.pk, 1]))["Content-Type"] == "image/webp"
    assert client.get(reverse("retrieval:pdf", args=[document.pk])).status_code == 404


def test_without_an_engine_the_sentence_says_what_to_install(collection, monkeypatch):
    monkeypatch.setattr(pages, "_list_installed_languages", lambda: ())
    document = read(collection, "scan.pdf", scan(draw(WORDS)))
    assert document.status == Document.Status.FAILED
    assert "apt-get install tesseract-ocr" in document.error
