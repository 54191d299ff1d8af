"""Runs of sources whose servers, pages and feeds name encodings that are none of the web."""

import pytest

from retrieval.models import Document
from tests.support.source_servers import FeedRemote
from tests.support.sources import WebServer, make_source, run_once

pytestmark = pytest.mark.django_db

LABELS = ["idna", "punycode", "utf-7", "unicode_escape", "undefined", "rot13", "nonsense"]
TEXT = "De één weegt 30 kilogram, de andere in café 't Hoekje 45."


@pytest.fixture
def server():
    remote = WebServer()
    yield remote
    remote.close()


@pytest.mark.parametrize("label", LABELS)
def test_a_website_is_read_to_its_end(collection, server, label):
    start = f"<html><head><meta charset='{label}'></head><body><p>{TEXT}</p><a href='/b'>b</a>"
    server.pages = {"/": f"{start}{'<p>ketel-</p>' * 20_000}", "/b": f"<html><body><p>Pomp {TEXT}</p></body></html>"}
    for path in server.pages:
        server.headers[path] = {"Content-Type": f"text/html; charset={label}"}
    source = make_source(collection, "website", {"url": server.url, "way": "crawl", "depth": 3, "delay": 0})
    run = run_once(source)
    assert (run.status, run.failed, Document.objects.count()) == ("done", 0, 2)
    server.pages["/sitemap.xml"] = f"<?xml version='1.0' encoding='{label}'?><urlset><url><loc>/b</loc></url></urlset>"
    source.options["way"] = "sitemap"
    source.save()
    assert run_once(source).status == "done"


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("place", ["header", "declaration"])
def test_a_feed_is_read_as_utf_8(collection, label, place):
    remote = FeedRemote()
    remote.put("one", TEXT)
    if place == "header":
        remote.headers["/feed"] = {"Content-Type": f"application/atom+xml; charset={label}"}
    else:
        remote.pages["/feed"] = f"<?xml version='1.0' encoding='{label}'?>{remote.pages['/feed']}"
    run = run_once(make_source(collection, "feed", {**remote.options, "content": "entry"}))
    remote.close()
    assert (run.status, run.added, run.failed) == ("done", 1, 0), run.error


@pytest.mark.parametrize(
    ("codec", "label", "charset"),
    [
        ("cp1252", "iso-8859-1", ""),
        ("utf-16", "utf-16", ""),
        ("utf-8", "", ""),
        ("cp1251", "", "; charset=windows-1251"),
    ],
)
def test_a_feed_in_a_known_encoding_is_decoded_by_it(collection, codec, label, charset):
    remote = FeedRemote()
    words = "Цена насоса" if codec == "cp1251" else "café 't Hoekje"
    remote.put("one", words)
    declaration = f'<?xml version="1.0" encoding="{label}"?>' if label else ""
    body = f"{declaration}{remote.pages['/feed']}".encode(codec)
    remote.pages["/feed"] = type("Body", (str,), {"encode": lambda _text: body})("")
    remote.headers["/feed"] = {"Content-Type": f"application/rss+xml{charset}"}
    run = run_once(make_source(collection, "feed", {**remote.options, "content": "entry"}))
    remote.close()
    assert (run.status, run.added) == ("done", 1), run.error
    assert words in Document.objects.get().file.read().decode()
