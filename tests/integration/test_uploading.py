"""The upload form's script: files, texts, addresses; an answer for each, and rights as for the form."""

import re
import threading
import time

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from retrieval.admin.collection_admin import MEANINGS
from retrieval.models import Collection, Document
from retrieval.sources import web_page
from tests.support.people import make_staff
from tests.support.sources import WebServer

pytestmark = pytest.mark.django_db
ADD = "/admin/retrieval/document/add/"


def send(client, collection, **body):
    return client.post(ADD, {"collection": collection.pk, **body}, headers={"Accept": "application/json"})


def test_each_file_is_answered_and_a_duplicate_is_named(admin_client, collection):
    first = send(admin_client, collection, file=SimpleUploadedFile("a.md", b"# Pumps\n\nWords."), source="folder/a.md")
    (row,) = first.json()["files"]
    assert row["added"]
    assert "data-unsettled" in row["badge"]
    same = send(admin_client, collection, file=SimpleUploadedFile("b.md", b"# Pumps\n\nWords."))
    assert same.json()["files"][0] == {
        "added": False,
        "sentence": "Not added: b.md is the same file as folder/a.md, which is there already.",
        "badge": "",
    }
    refused = send(admin_client, collection, file=SimpleUploadedFile("c.ps", b"%!PS-Adobe"))
    assert "c.ps is a PostScript file" in refused.json()["files"][0]["sentence"]
    nothing = send(admin_client, collection)
    assert (nothing.status_code, nothing.json()["sentence"]) == (
        400,
        "Choose a file, or write a text or a web address.",
    )
    pasted = send(admin_client, collection, text="# Valves\n\nMore words.", text_name="Valves")
    assert pasted.json()["files"][0]["added"]
    assert set(Document.objects.values_list("source", flat=True)) == {"folder/a.md", "Valves.md"}


def test_the_form_is_for_those_who_may_add_documents(client, admin_client, collection):
    for address in (reverse("chat:home"), reverse("admin:retrieval_collection_change", args=[collection.pk])):
        assert b"data-uploading" in admin_client.get(address).content
    assert b"data-uploading" not in client.get(reverse("chat:home")).content
    assert send(client, Collection.objects.create(name="Other", slug="other"), text="Words.").status_code == 302
    assert not Document.objects.exists()


def test_a_new_collection_is_made_by_those_who_may(admin_client, client, collection):
    page = admin_client.get(ADD).content.decode()
    assert "Or a new collection" in page
    for icon in ("#upload", "#printed", "#sheet", "#mail"):
        assert f"icons.svg{icon}" in page
    file = SimpleUploadedFile("a.md", b"# Pumps\n\nWords.")
    response = admin_client.post(ADD, {"new_collection": "Water works", "file": file}, follow=True)
    assert "The collection Water works was made." in response.content.decode()
    made = Collection.objects.get(slug="water-works")
    assert (made.visibility, made.documents.count()) == ("granted", 1)
    again = admin_client.post(ADD, {"new_collection": "water works"}, headers={"Accept": "application/json"})
    assert again.json()["sentence"] == "There is a collection with this name: choose it."

    writer = make_staff("writer", "add_document")
    client.force_login(writer)
    assert "Or a new collection" not in client.get(ADD).content.decode()
    refused = client.post(ADD, {"new_collection": "Mine"}, headers={"Accept": "application/json"})
    assert refused.status_code == 400
    writer.user_permissions.add(Permission.objects.get(codename="add_collection"))
    # A closed collection of others does not show that it exists.
    mine = client.post(ADD, {"new_collection": "Water works"}, headers={"Accept": "application/json"}).json()
    assert Collection.objects.get(pk=mine["collection"]["pk"]).slug == "water-works-2"
    assert Collection.objects.curated_by(writer).filter(pk=mine["collection"]["pk"]).exists()


def test_the_form_of_a_new_collection_leads_to_its_drop_zone(admin_client, client):
    add = reverse("admin:retrieval_collection_add")
    fields = {"name": "Pumps", "visibility": "granted", "text_search_configuration": "auto"}
    grants = {"grants-TOTAL_FORMS": 0, "grants-INITIAL_FORMS": 0}
    refused = admin_client.post(add, {**fields, **grants}, headers={"Accept": "application/json"})
    assert refused.json() == {"errors": {"id_slug": ["This field is required."]}}
    saved = admin_client.post(add, {**fields, **grants, "slug": "pumps"}, headers={"Accept": "application/json"})
    address = reverse("admin:retrieval_collection_change", args=[Collection.objects.get(slug="pumps").pk])
    assert saved.json()["url"] == address
    saved = admin_client.post(add, {**fields, **grants, "slug": "more-pumps"}, follow=True)
    page = saved.content.decode()
    assert "data-uploading" in page
    assert "Add documents now" in page

    maker = make_staff("maker", "add_collection")
    client.force_login(maker)
    assert "data-uploading" not in client.get(add).content.decode()


def test_each_choice_of_who_may_ask_is_explained(admin_client, collection):
    page = admin_client.get(reverse("admin:retrieval_collection_add")).content.decode()
    for meaning in MEANINGS.values():
        assert f"<small>{meaning}</small>" in page
    assert "A new collection is closed until you choose otherwise." in page
    assert re.search(r'<input type="radio" name="visibility" value="granted"[^>]* checked', page)
    change = reverse("admin:retrieval_collection_change", args=[collection.pk])
    assert re.search(r'value="public"[^>]* checked', admin_client.get(change).content.decode())


class Web(WebServer):
    """Answers a path of ``dripping`` with a byte now and then; ``was_left`` is set when the client left early."""

    dripping = "/drip"

    def __init__(self):
        super().__init__()
        self.was_left = threading.Event()

    def answer(self, request):
        if request.path != self.dripping:
            super().answer(request)
            return
        for _second in range(100):
            try:
                request.wfile.write(b"H")
            except OSError:
                self.was_left.set()
                return
            time.sleep(0.05)


@pytest.fixture
def web(settings):
    settings.SOURCE_PRIVATE_HOSTS = ["127.0.0.1"]
    server = Web()
    yield server
    server.close()


PAGE = "<html><title>Pumps</title><body><nav>Menu</nav><main><p>The pump weighs 30 kilograms.</p></main></body></html>"


def test_the_page_at_a_pasted_address_is_fetched_once(admin_client, collection, web):
    web.pages |= {"/guides/pump": PAGE, "/old": "", "/robots.txt": "User-agent: *\nDisallow: /"}
    web.headers["/old"] = {"Status": "301", "Location": "/guides/pump?utm_source=mail#top"}
    host = web.url.removeprefix("http://")

    (row,) = send(admin_client, collection, text=f"  {web.url}/old \n").json()["files"]
    assert row["added"], row
    document = Document.objects.get()
    assert (document.source, document.url) == (f"{host}/guides/pump.html", f"{web.url}/guides/pump")
    assert document.file.read().decode() == PAGE
    assert web.requests == ["/old", "/guides/pump?utm_source=mail"]
    Document.objects.update(title="Pumps", source="pump.html")
    (row,) = send(admin_client, collection, text=f"{web.url}/guides/pump").json()["files"]
    assert row["sentence"] == f'Not added: {web.url}/guides/pump is already in the collection, as "Pumps" (pump.html).'
    (row,) = send(admin_client, collection, text=f"See {web.url}/guides/pump").json()["files"]
    assert Document.objects.get(source="Pasted text.md").file.read().decode().startswith("See http")

    web.pages["/facts"] = "Facts."
    web.headers["/facts"] = {"Content-Type": "text/plain"}
    body = {"collection": collection.slug, "url": f"{web.url}/facts", "title": "The facts"}
    [accepted] = admin_client.post("/api/v1/documents/", body).json()["accepted"]
    assert (accepted["source"], accepted["url"]) == (f"{host}/facts.txt", f"{web.url}/facts")
    assert accepted["title"] == "The facts"
    refused = admin_client.post("/api/v1/documents/", {**body, "url": f"{web.url}/gone"})
    assert refused.status_code == 400
    assert "There is no page at" in refused.json()["rejected"][0]["error"]


def test_each_way_to_fail_has_its_sentence(admin_client, collection, web, settings, monkeypatch):
    web.failing |= {"/closed": 403, "/broken": 500}
    web.pages |= {"/empty": "", "/loop": "", "/large": "x" * 2000, "/sound": "ID3\x03", "/inside": ""}
    web.headers |= {
        "/loop": {"Status": "302", "Location": "/loop"},
        "/sound": {"Content-Type": "audio/mpeg"},
        "/inside": {"Status": "302", "Location": "http://10.1.2.3/"},
    }
    settings.DOCUMENT_MAX_BYTES = 1000
    away = Web()
    away.close()
    sentences = {
        "/gone": "There is no page at",
        "/closed": "is not for everybody (403)",
        "/broken": "answered 500",
        "/empty": "is an empty page",
        "/loop": "redirects too many times",
        "/large": "is larger than",
        "/sound": "is an audio or video file",
        "/inside": "10.1.2.3 is inside this site's own network",
        "/drip": "does not answer in time",
        f"{away.url}/": "cannot be reached",
        "http://me:secret@example.org/": "without a name or a password",
        "http://[::1/": "Enter a valid URL",
        "http://nowhere.invalid/": "There is no machine named nowhere.invalid",
    }
    for path, sentence in sentences.items():
        # A busy machine answers the others late.
        monkeypatch.setattr(web_page, "PAGE_SECONDS", 0.4 if path == "/drip" else 30.0)
        address = path if path.startswith("http") else f"{web.url}{path}"
        (row,) = send(admin_client, collection, text=address).json()["files"]
        assert sentence in row["sentence"], path
        assert not row["added"]
    assert web.was_left.wait(10)
    settings.SOURCE_PRIVATE_HOSTS = []
    (row,) = send(admin_client, collection, text=f"{web.url}/page").json()["files"]
    assert "own network" in row["sentence"]
    assert not Document.objects.exists()
