"""Hostile files against a real web server, which still answers others."""

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from django.core.files.base import ContentFile

from retrieval.models import Document, DocumentText
from tests.support import bombs
from tests.support.site import WebServer

pytestmark = pytest.mark.django_db(transaction=True)

# Of retrieval.apps.
DRAWING_SECONDS = 10
TEXT = "The pump hums.\n"


@pytest.fixture(scope="module")
def server(django_db_setup, tmp_path_factory):
    found = WebServer(tmp_path_factory.mktemp("web") / "web.log")
    yield found
    found.stop()


def saved(collection, name, data):
    """Save a PDF document as if it had been read, and return the address of its first page's picture."""
    digest = hashlib.sha256(data + name.encode()).hexdigest()
    document = Document(
        collection=collection, source=name, media_type="application/pdf", status="ready", content_hash=digest
    )
    document.file.save(name, ContentFile(data), save=True)
    DocumentText.objects.create(document=document, content_hash=digest, text=TEXT, pages=[[1, 0, len(TEXT)]])
    return f"/documents/{document.pk}/pages/1/"


def test_thirty_requests_for_a_bomb_cost_one_attempt_and_pages_answer(collection, server):
    address = saved(collection, "bomb.pdf", bombs.pdf_endless())
    innocent = saved(collection, "plain.pdf", bombs.pdf(bombs.page(bombs.WORDS)))
    viewer = innocent.replace("pages/1/", "")
    # This request loads the modules that are imported on first use.
    other = saved(collection, "other.pdf", bombs.pdf(bombs.page(bombs.WORDS * 2)))
    assert httpx2.get(server.url + other.replace("pages/1/", ""), timeout=60).status_code == 200
    slowest = 0.0
    with ThreadPoolExecutor(30) as askers:
        asked = [askers.submit(httpx2.get, server.url + address, timeout=60) for _ in range(30)]
        while not all(response.done() for response in asked):
            for path in ("/healthz", viewer):
                started = time.monotonic()
                assert httpx2.get(server.url + path, timeout=60).status_code == 200
                slowest = max(slowest, time.monotonic() - started)
            time.sleep(0.2)
    # A reader whose page cannot be drawn in time is asked to come back.
    assert {response.result().status_code for response in asked} == {422, 503}
    # It takes a second on an idle machine.
    assert slowest < DRAWING_SECONDS
    assert "ragsite_pages_not_drawn_total 1.0" in httpx2.get(f"{server.url}/metrics", timeout=30).text
    started = time.monotonic()
    assert httpx2.get(server.url + address, timeout=60).status_code == 422
    assert time.monotonic() - started < DRAWING_SECONDS / 2
    assert httpx2.get(server.url + innocent, timeout=60).headers["Content-Type"] == "image/webp"
