"""The front page: the site's own name, a card for each readable collection, and the visitor's latest questions."""

import io
import re

import pytest
from django.urls import reverse
from django.utils import translation
from PIL import Image

from ragsite.models import SiteIdentity
from ragsite.site_identity import LARGEST_LOGO
from retrieval.models import Collection

pytestmark = pytest.mark.django_db(transaction=True)

PUMPS = "# Pumps\n\n## How often is the wet-rotor pump cleaned?\n\nThe wet-rotor pump is cleaned every year.\n"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def draw(kind, size=(20, 20)):
    data = io.BytesIO()
    Image.new("RGB", size).save(data, kind)
    return data.getvalue()


@pytest.fixture
def collections(ingest):
    shown = Collection.objects.create(slug="pumps", name="Pumps", description="All about pumps.")
    closed = Collection.objects.create(slug="secret", name="Secret plans", visibility="granted")
    Collection.objects.create(slug="empty", name="Nothing yet")
    ingest(shown, "pumps.md", PUMPS)
    ingest(closed, "plans.md", "# Plans\n\n## Which town is the next factory in?\n\nThe next factory is in Leuven.\n")
    return shown, closed


def test_a_visitor_sees_a_card_for_each_collection_with_documents_that_she_may_ask(collections, client):
    page = client.get("/").content.decode()
    cards = page.partition('id="suggestions"')[2].partition("</section>")[0]
    assert re.findall(r'<h3><a href="([^"]+)">([^<]+)</a>', cards) == [("/documents/?collection=pumps", "Pumps")]
    assert "All about pumps." in cards
    assert "1 document ·" in cards
    assert "How often is the wet-rotor pump cleaned?" in cards
    assert "Secret" not in page
    assert "factory" not in page


def test_somebody_with_a_grant_sees_the_closed_collection_too(collections, admin_client):
    assert "Secret plans" in admin_client.get("/").content.decode()


def test_a_visitor_who_comes_back_finds_the_latest_questions(collections, client):
    client.post("/ask/", {"question": "How often is the pump cleaned?"})
    section = client.get("/").content.decode().partition('id="suggestions"')[2]
    assert re.search(r'href="/c/[0-9a-f-]{36}/">.*?How often is the pump cleaned\?', section, re.DOTALL)


def test_the_site_has_the_name_line_and_logo_that_an_administrator_gave(admin_client, client):
    address = reverse("admin:ragsite_siteidentity_changelist")
    form = admin_client.get(address, follow=True)
    assert form.status_code == 200
    picture = io.BytesIO(SVG)
    picture.name = "logo.svg"
    sent = {"name": " Sint  Willibrord ", "line": "Ask the <b>hospital</b>", "picture": picture}
    sent["contact"] = "Kept by the library, library@sint-willibrord.example"
    assert admin_client.post(form.redirect_chain[-1][0], sent).status_code == 302
    page = client.get("/").content.decode()
    assert "<title>Sint Willibrord</title>" in page
    assert "Ask the &lt;b&gt;hospital&lt;/b&gt;" in page
    assert 'Kept by the library, <a href="mailto:library@sint-willibrord.example"' in page
    assert '<span class="brand-name">Sint Willibrord</span>' in client.get("/accounts/login/").content.decode()
    logo = re.search(r'class="brand-logo" src="([^"]+)"', page)[1]
    served = client.get(logo)
    assert (served.content, served["Content-Type"]) == (SVG, "image/svg+xml")
    # Opened by itself, its script may not run.
    assert "sandbox" in served["Content-Security-Policy"]
    admin_client.post(form.redirect_chain[-1][0], {"name": "Sint Willibrord", "line": "", "without_logo": "on"})
    assert "brand-logo" not in client.get("/").content.decode()
    assert client.get(logo).status_code == 404


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<html><script>alert(1)</script></html>", "must be a picture"),
        (b"GIF89a" + bytes(40), "must be a picture"),
        (b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><svg>&a;</svg>', "must be a picture"),
        (draw("PNG")[:40], "must be a picture"),
        (bytes(LARGEST_LOGO + 1), "larger than 200 KB"),
        (draw("PNG", (2001, 2)), "2,000 pixels"),
    ],
)
def test_files_that_are_no_logo_are_refused(admin_client, data, reason):
    SiteIdentity.objects.create(pk=1)
    picture = io.BytesIO(data)
    picture.name = "logo.png"
    address = reverse("admin:ragsite_siteidentity_change", args=[1])
    answer = admin_client.post(address, {"name": "Ours", "line": "", "picture": picture})
    assert reason in answer.content.decode()
    assert not SiteIdentity.objects.get().logo


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_pictures_are_taken(admin_client, client, kind):
    SiteIdentity.objects.create(pk=1)
    picture = io.BytesIO(draw(kind))
    picture.name = "logo"
    address = reverse("admin:ragsite_siteidentity_change", args=[1])
    assert admin_client.post(address, {"name": "Ours", "line": "", "picture": picture}).status_code == 302
    served = client.get(reverse("logo", args=[SiteIdentity.objects.get().logo_version]))
    assert served["Content-Type"] == f"image/{kind.lower()}"


def test_a_reader_changes_the_language_of_the_site(client):
    page = client.get("/").content.decode()
    assert re.search(r'name="language" value="nl" lang="nl".*?Nederlands', page, re.DOTALL)
    # The language of a request stays active in the test's thread.
    with translation.override("en"):
        client.post("/language/setlang/", {"language": "nl", "next": "/"})
        assert 'lang="nl"' in client.get("/").content.decode()[:200]
