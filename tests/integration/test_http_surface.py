"""Checks of every address of the site: hostile headers, caching, and refusals in the caller's form."""

import gzip
import re
import uuid

import pytest

from chat.models import Answer, Conversation
from tests.support.addresses import addresses, filled
from tests.support.people import make_reader, make_superuser

pytestmark = pytest.mark.django_db

PASSWORD = "a long password"
BROKEN_ADDRESS = "http://[bad"
# The security policy forbids scripts, styles and handlers within a page.
INLINE = re.compile(
    r"""<script(?![^>]*\s(?:src=|type="application/json"))[^>]*>|<[^<>]*\s(?:style|on[a-z]+)=[^<>]*>""", re.I
)


@pytest.fixture
def administrator():
    return make_superuser("admin", password=PASSWORD)


@pytest.fixture
def values(collection, ingest, administrator):
    """Names that exist: a document, and an answer with its conversation."""
    document = ingest(collection, "pump.md", "# Pump\n\nThe pump weighs 3450 grams.")
    conversation = Conversation.objects.create(owner=administrator, title="The pump")
    answer = Answer.objects.create(
        conversation=conversation, question="How heavy is it?", text="Heavy.", status=Answer.Status.COMPLETED
    )
    return {
        "document_id": document.pk, "answer_id": answer.pk, "conversation_id": conversation.pk, "pk": document.pk,
        "url": "retrieval/document/", "model": "ragsite", "rest": "files",
    }  # fmt: skip


@pytest.mark.parametrize("signed_in", [True, False])
def test_no_cache_keeps_what_depends_on_who_asks_and_no_page_breaks_the_security_policy(
    client, values, administrator, signed_in
):
    if signed_in:
        client.force_login(administrator)
    client.raise_request_exception = False
    kept, broken, inline, seen = [], [], [], 0
    for _name, route, _view in addresses():
        address = filled(route, lambda kind, name: values.get(name, uuid.UUID(int=7) if kind == "uuid" else 1))
        if address.endswith("/stream/") or "/pages/" in address:
            continue  # these close the test's own connection; their own tests look at their headers
        response = client.get(address, headers={"HX-Current-URL": BROKEN_ADDRESS, "HX-Request": "true"})
        seen += 1
        if response.status_code >= 500 and address != "/readyz":
            broken.append((address, response.status_code))
        if "private" not in response.headers.get("Cache-Control", ""):
            kept.append(address)
        if response.headers.get("Content-Type", "").startswith("text/html") and not response.streaming:
            inline += [(address, found) for found in INLINE.findall(response.content.decode())]
    assert seen > 100
    assert broken == []
    assert kept == []
    assert inline == []


def test_static_files_stay_cacheable(client):
    response = client.get("/static/chat/site.css")
    assert response.status_code == 200
    assert "private" not in response.headers["Cache-Control"]


def test_the_front_page_with_its_typefaces_takes_180_kilobytes_over_the_wire(client):
    page = client.get("/").content
    addresses = set(re.findall(rb'(?:src|href)="(/static/[^"#]+)', page))
    assert len(addresses) > 5
    files = [client.get(address.decode(), headers={"Accept-Encoding": "gzip"}) for address in addresses]
    assert len(page) + sum(int(file.headers["Content-Length"]) for file in files) < 180_000
    style = client.get("/static/chat/site.css", headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(style.getvalue()) == client.get("/static/chat/site.css").getvalue()


MALFORMED = (BROKEN_ADDRESS, "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"))


def test_a_malformed_header_is_passed_over(client, values, administrator):
    client.force_login(administrator)
    for place in ("/conversations/", "/c/{conversation_id}/entry/", "/c/{conversation_id}/", "/"):
        for header in ("HX-Current-URL", "Referer", "Origin", "Last-Event-ID", "If-None-Match"):
            for value in MALFORMED:
                response = client.get(place.format(**values), headers={header: value, "HX-Request": "true"})
                assert response.status_code == 200, (place, header)


def test_deleting_a_conversation_from_a_page_with_a_malformed_address(client, values, administrator):
    client.force_login(administrator)
    response = client.post(
        f"/c/{values['conversation_id']}/delete/", headers={"HX-Current-URL": BROKEN_ADDRESS, "HX-Request": "true"}
    )
    assert response.status_code == 200
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("path", ["/api/schema/", "/api/docs/"])
def test_the_schema_does_not_look_at_credentials(client, path):
    """The user name has a NUL, which the database would refuse."""
    assert client.get(path, headers={"Authorization": "Basic AHg6eA=="}).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/nothing/", "/api/v1/answers/7/", "/api/nothing"])
def test_the_api_refuses_unknown_addresses_in_json(client, path):
    response = client.get(path)
    assert response.status_code == 404
    assert response.json() == {"detail": "There is nothing at this address: /api/docs/ lists what there is."}


def test_people_get_a_page(client):
    response = client.get("/nothing/")
    assert (response.status_code, response["Content-Type"]) == (404, "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("path", "inside"),
    [("/api/v1/search/", lambda body: body["detail"]), ("/v1/models", lambda b: b["error"]["message"])],
)
def test_a_host_that_is_not_served_is_refused_in_json(client, path, inside):
    response = client.get(path, headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert inside(response.json()).startswith("The request was not understood")


def sign_in(client, path, name, **fields):
    response = client.post(path, {"username": name, "password": PASSWORD, **fields})
    assert response.status_code == 302
    return response.headers["Location"]


@pytest.mark.parametrize("target", ["", "http://[bad", "https://evil.example/"])
def test_whoever_signs_in_lands_at_the_chat(client, administrator, target):
    make_reader("reader", password=PASSWORD)
    assert sign_in(client, "/accounts/login/", "reader", next=target) == "/"
    assert client.get("/").status_code == 200
    assert sign_in(client, "/accounts/logout/", "reader") == "/"
    assert sign_in(client, "/admin/login/", "admin", next=target) == "/"
