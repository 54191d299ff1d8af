"""The source viewer over HTTP: what it shows, to whom, and how files leave the site."""

import logging
import os
import re
import tracemalloc
from contextlib import ExitStack
from html import unescape
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.test import AsyncClient
from django.urls import reverse

from retrieval.documents.deletion import forget_page_pictures, get_page_picture_folder
from retrieval.models import Chunk, Collection, Document, DocumentText
from retrieval.viewer import pdf_pages
from tests.support.libraries import remembered
from tests.support.people import make_staff

pytestmark = pytest.mark.django_db

MANUAL = (Path(__file__).parents[3] / "demo" / "parts" / "service-manual.pdf").read_bytes()


def viewer(document, words="", **query):
    """Return the address of the viewer with a passage: its first ``words`` in the text."""
    if words:
        text = DocumentText.objects.get(document=document).text
        query |= {"start": text.index(words), "end": text.index(words) + len(words)}
    return reverse("retrieval:document", args=[document.pk]) + "?" + "&".join(f"{k}={v}" for k, v in query.items())


def page(client, address):
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def marked(html):
    return re.findall(r"\w+", unescape(re.sub("<[^>]+>", " ", " ".join(re.findall(r"<mark.*?</mark>", html, re.S)))))


def test_markdown_is_laid_out_and_its_exact_text_is_one_link_away(client, collection, ingest):
    document = ingest(collection, "guide/a.md", "# Pumps\n\nA **wet** pump.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    html = page(client, viewer(document, "A **wet** pump."))
    assert '<h2 id="section-0">Pumps</h2>' in html
    assert "<th>a</th>" in html
    assert marked(html) == ["A", "wet", "pump"]
    assert html.count('id="passage"') == 1
    start, end = re.findall(r'href="\?start=(\d+)&amp;end=(\d+)&amp;view=text#passage"', html)[0]
    text = page(client, viewer(document, start=start, end=end, view="text"))
    assert '<mark id="passage">A **wet** pump.</mark>' in text
    assert "<th>" not in text
    assert f'href="?start={start}&amp;end={end}#passage"' in text


def test_web_pages_are_laid_out_without_what_could_run(client, collection, ingest):
    source = (
        "<html><head><title>T</title><style>p{}</style></head><body><h1>Pumps</h1><script>bad()</script>"
        '<p onclick="bad()">A pump runs on &lt;b&gt;water&lt;/b&gt; <a href="javascript:bad()">here</a> each day.</p>'
        "<ul><li>one</li><li>two</li></ul></body></html>"
    )
    html = page(client, viewer(ingest(collection, "a.html", source), "runs on"))
    content = html[html.index('class="document') :]
    assert '<h2 id="section-0">Pumps</h2>' in content
    assert "<li>one</li>" in content
    assert marked(content) == ["runs", "on"]
    assert "&lt;b&gt;water&lt;/b&gt;" in content
    assert not re.search("bad\\(|onclick|<style|javascript:", content)


@pytest.mark.parametrize("address", ["b%00.md", "%00", "%ED%A0%80.md", "x" * 3000 + ".md", "//[b", "http://[b", "#%00"])
@pytest.mark.parametrize(
    ("source", "text"),
    [("a.md", "# A\n\nSome [words]({}).\n"), ("a.html", '<h1>A</h1><p>Some <a href="{}">words</a>.')],
)
def test_a_link_that_names_no_document_leaves_its_words(client, collection, ingest, source, text, address):
    html = page(client, viewer(ingest(collection, source, text.format(address))))
    assert re.search(r"<p>Some (<a [^>]*>)?words(</a>)?\.", html)


def test_a_passage_that_is_not_visible_is_shown_in_the_text(client, collection, ingest):
    document = ingest(collection, "a.md", "# One\n\nSome [words][r].\n\n[r]: https://example.org/x\n")
    html = page(client, viewer(document, "https://example.org/x"))
    assert "The passage is not visible in the laid-out document; this is its text." in html
    assert '<mark id="passage">https://example.org/x</mark>' in html


def test_a_document_of_markup_alone_is_shown_as_its_text(client, collection, ingest):
    """The layout takes the web process a hundred times as long as prose."""
    document = ingest(collection, "a.md", "# One\n\nSome words.\n")
    # To ingest so much would take ten seconds.
    DocumentText.objects.update(text="# One\n\nSome words.\n" + "*_ " * 30_000)
    assert "This document is too long for its layout to be shown. This is its text." in page(client, viewer(document))


def test_code_has_numbered_lines_and_the_passage_on_its_own(client, collection, ingest):
    document = ingest(collection, "a.py", "import os\n\n\ndef pump(x):\n    return x < 1\n")
    html = page(client, viewer(document, "pump(x):\n    return"))
    # The keyboard stops at the lines of the passage.
    lines = re.findall(r'id="L(\d)" href="#L\d" data-line="\d" aria-label="Line \d"( tabindex=-1)?></a>', html)
    assert [number for number, skipped in lines if not skipped] == ["4", "5"]
    assert len(lines) == 5
    assert marked(html) == ["pump", "x", "return"]


@pytest.fixture
@remembered
def manual(collection, ingest):
    return ingest(collection, "manual.pdf", MANUAL)


def test_a_page_is_shown_as_printed_with_the_passage_on_it(client, manual):
    html = page(client, viewer(manual, "never down, so that"))
    assert "Page 2 of 10 as printed" in html
    assert html.count("<rect ") == 1
    assert f'href="/documents/{manual.pk}/pdf/#page=2"' in html
    assert re.search(r'href="\?start=\d+&amp;end=\d+&amp;page=3#page-3" rel="next"', html)
    picture = client.get(unescape(re.findall(r'<img src="([^"]+)"', html)[0]))
    assert picture["Content-Type"] == "image/webp"
    assert picture["Cache-Control"] == "private, max-age=3600"
    assert picture.content[8:12] == b"WEBP"
    assert (get_page_picture_folder() / f"{manual.content_hash}-2.webp").exists()


def test_another_page_can_be_asked_for(client, manual):
    html = page(client, viewer(manual, "never down, so that", page=10))
    assert "Page 10 of 10 as printed" in html
    assert "<rect" not in html
    assert 'rel="next"' not in html
    assert "Page 2 of 10" in page(client, viewer(manual, "never down, so that", page=11))


def test_a_page_that_cannot_be_drawn_is_told_and_logged(client, manual, caplog):
    manual.file.save("x.pdf", ContentFile(b"%PDF-1.4 damaged"))
    Document.objects.filter(pk=manual.pk).update(content_hash="f" * 64)
    DocumentText.objects.filter(document=manual).update(content_hash="f" * 64)
    with caplog.at_level(logging.WARNING):
        html = page(client, viewer(manual, "never down, so that"))
        picture = client.get(reverse("retrieval:page_picture", args=[manual.pk, 2]))
    assert "This page cannot be shown as a picture." in html
    assert "<img" not in html
    assert marked(html) == ["never", "down", "so", "that"]
    assert (picture.status_code, picture["Content-Type"]) == (422, "image/svg+xml")
    assert b"This page cannot be shown as a picture." in picture.content
    assert [record.message for record in caplog.records].count("page not drawn") == 2


def test_a_page_that_has_to_wait_too_long_may_be_asked_for_again(client, manual, monkeypatch):
    monkeypatch.setattr(pdf_pages, "WAITING_SECONDS", 0.0)
    # The cache has layouts of earlier tests.
    pdf_pages._layouts.clear()
    forget_page_pictures(get_page_picture_folder(), manual.content_hash)
    with ExitStack() as taken:
        for slots in (pdf_pages._drawing_slots, *[pdf_pages._measuring_slots] * 2):
            taken.enter_context(slots.take(lambda _waited: False))
        picture = client.get(reverse("retrieval:page_picture", args=[manual.pk, 3]))
        assert (picture.status_code, picture["Retry-After"], picture["Content-Type"]) == (503, "5", "image/svg+xml")
        html = page(client, viewer(manual, "never down, so that"))
        assert "Many pages are being drawn." in html
        assert "<img" not in html
    assert client.get(reverse("retrieval:page_picture", args=[manual.pk, 3])).status_code == 200


def test_pages_of_a_newer_file_are_not_shown_beside_the_older_text(client, manual):
    Document.objects.filter(pk=manual.pk).update(content_hash="e" * 64)
    html = page(client, viewer(manual, "never down, so that"))
    assert "A new version of the file is being read" in html
    assert "<img" not in html


def test_nothing_of_a_closed_collection_is_shown(client, manual, settings):
    addresses = [
        viewer(manual),
        *(reverse(f"retrieval:{name}", args=[manual.pk]) for name in ("original", "pdf")),
        reverse("retrieval:page_picture", args=[manual.pk, 1]),
    ]
    assert [client.get(address).status_code for address in addresses] == [200] * 4
    Collection.objects.update(visibility="staff")
    assert [client.get(address).status_code for address in addresses] == [404] * 4
    settings.CHAT_REQUIRES_LOGIN = True
    assert [client.get(address).status_code for address in addresses] == [302] * 4


def test_a_pdf_opens_in_the_browser_where_nothing_can_run(client, manual):
    response = client.get(reverse("retrieval:pdf", args=[manual.pk]))
    assert response["Content-Type"] == "application/pdf"
    assert response["Content-Disposition"] == 'inline; filename="manual.pdf"'
    assert response["X-Content-Type-Options"] == "nosniff"
    policy = response["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "script-src" not in policy
    assert b"".join(response.streaming_content) == MANUAL


def test_what_is_no_pdf_is_never_shown_but_saved(client, collection, ingest):
    document = ingest(collection, "a.html", "<html><body><p>Some text of a page.</p></body></html>")
    assert client.get(reverse("retrieval:pdf", args=[document.pk])).status_code == 404
    assert client.get(reverse("retrieval:page_picture", args=[document.pk, 1])).status_code == 404
    saved = client.get(reverse("retrieval:original", args=[document.pk]))
    assert saved["Content-Disposition"] == 'attachment; filename="a.html"'
    # Neither what is known of a file nor what it begins with is enough.
    Document.objects.filter(pk=document.pk).update(media_type="application/pdf")
    assert client.get(reverse("retrieval:pdf", args=[document.pk])).status_code == 404
    document.file.save("a.txt", ContentFile(b"%PDF-1.4 and other text"))
    Document.objects.filter(pk=document.pk).update(media_type="text/plain")
    assert client.get(reverse("retrieval:pdf", args=[document.pk])).status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_a_large_file_is_sent_without_being_held_in_memory(collection, manual):
    size = 40 * 2**20
    os.truncate(manual.file.path, size)
    response = await AsyncClient().get(reverse("retrieval:original", args=[manual.pk]))
    assert response["Content-Length"] == str(size)
    assert response["Content-Disposition"] == 'attachment; filename="manual.pdf"'
    received = 0
    tracemalloc.start()
    try:
        async for block in response:
            received += len(block)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert received == size
    assert peak < 4 * 2**20


def test_a_table_is_shown_as_one_with_the_cited_row_or_cell_marked(client, collection, ingest):
    document = ingest(collection, "parts.csv", "sku,weight_g\nMX-1,3450\nMX-2,900\nMX-3,\n")
    html = page(client, viewer(document, "sku: MX-2; weight_g: 900"))
    assert "sku:" not in html
    assert re.findall(r'<th scope="col"[^>]*>(\w+)</th>', html) == ["sku", "weight_g"]
    assert marked(html) == ["MX", "2", "900"]
    assert html.count('id="passage"') == 1
    assert marked(page(client, viewer(document, "3450"))) == ["3450"]
    assert 'data-value="3450.0"' in html


def test_a_long_table_is_shown_a_stretch_of_rows_at_a_time(client, collection, ingest, monkeypatch):
    monkeypatch.setattr("retrieval.viewer.page.ROWS_SHOWN", 20)
    rows = [*(f"part {number},{number * 37 % 101}" for number in range(90)), "part x,"]
    document = ingest(collection, "parts.csv", "name,weight\n" + "\n".join(rows) + "\n")

    def names(html):
        return re.findall(r"<tr[^>]*><td>(?:<mark[^>]*>)?(part \w+)", html)

    html = page(client, viewer(document, "name: part 43; weight: 76"))
    assert names(html) == [f"part {number}" for number in range(40, 60)]
    assert marked(html) == ["part", "43", "76"]
    assert "Rows 41 to 60 of 91" in html
    following = unescape(re.findall(r'href="([^"]+)" rel="next"', html)[0])
    assert names(page(client, reverse("retrieval:document", args=[document.pk]) + following))[0] == "part 60"
    address = reverse("retrieval:document", args=[document.pk])
    assert names(page(client, address + "?table=0&rows=99"))[-1] == "part x"
    for damaged in ("?table=7&rows=x", "?table=0&rows=0", "?table=0&rows=99999999"):
        assert names(page(client, address + damaged))


def test_the_borders_of_passages_are_drawn_over_the_text(client, admin_user, collection, ingest, settings):
    text = "# Pumps\n\nA <b>wet</b> pump runs.\n\n## Seals\n\nA seal lasts a year. It is changed by hand.\n"
    document = ingest(collection, "guide/a.md", text)
    first, second = Chunk.objects.get(document=document), Chunk.objects.get(document=document)
    second.pk, second.ordinal, second.heading_path = None, 1, ["Pumps", "Seals"]
    second.save()
    middle = text.index("It is changed")
    Chunk.objects.filter(pk=first.pk).update(end=middle, canonical_questions=["How long does a <seal> last?"])
    Chunk.objects.filter(pk=second.pk).update(start=text.index("A seal"), page=3)
    address = viewer(document, "A seal lasts", passages=1)
    assert "border-start" not in page(client, address)
    assert "Show passages" not in page(client, address)
    client.force_login(admin_user)
    plain = page(client, viewer(document, "A seal lasts"))
    assert "border-start" not in plain
    assert re.search(r'href="\?passages=1&amp;start=\d+&amp;end=\d+#passage">.*?Show passages', plain, re.S)
    html = page(client, address)
    content = html[html.index('class="document') :]
    said = " ".join(unescape(re.sub(r"<[^>]+>", " ", content)).split())
    assert "Passage 1 " in said
    assert f"{first.token_count} tokens {middle} characters" in said
    assert "How long does a <seal> last?" in said
    assert "21 characters of the passage before page 3" in said
    assert "Pumps › Seals" in said
    # The words of both passages, and the end of the first, before the rest of the second.
    assert "In passages 1, 2: A seal lasts a year. End of passage 1 It is changed by hand. End of passage 2" in said
    assert "A <b>wet</b> pump runs." in said
    assert marked(content) == ["A", "seal", "lasts"]
    # The contents lead to headings here too.
    assert f'id="section-{text.index("## Seals")}"' in content
    assert f'href="/admin/retrieval/chunk/{second.pk}/change/"' in content
    assert "Hide passages" in html
    clerk = make_staff("clerk", "view_answer")
    client.force_login(clerk)
    seen = page(client, address)
    assert "Passage 1" in seen
    assert "/admin/" not in seen
    client.logout()
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    assert "Passage 1" in page(client, address)
    Collection.objects.update(visibility="staff")
    assert client.get(address).status_code == 404


def test_a_document_shows_the_values_by_which_readers_filter(client, collection, ingest):
    document = ingest(collection, "policy.md", "# Policy\n\nGoods come back within thirty days.")
    fields = [
        ("published", "", "dates"),
        ("audience", "For", "values"),
        ("edition", "", "numbers"),
        ("format", "", "values"),
    ]
    for position, (field, label, kind) in enumerate([*fields, ("author", "", "values"), ("checked", "", "dates")]):
        collection.filters.create(field=field, label=label, kind=kind, position=position)
    metadata = {"published": "2025-09-01", "audience": ["sales", "<b>care</b>"], "edition": 3.0, "checked": "soon"}
    Document.objects.filter(pk=document.pk).update(metadata={**metadata, "secret": "not marked"})
    shown = ["Published: 1 September 2025", "For: sales, &lt;b&gt;care&lt;/b&gt;", "Edition: 3"]
    for query in ({}, {"sheet": 1}):
        text = page(client, viewer(document, "thirty days", **query))
        assert [fact for fact in shown if f"<span>{fact}</span>" in text] == shown
        assert not any(word in text for word in ("not marked", "Author:", "Checked:", "Format:"))
