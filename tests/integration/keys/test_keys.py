"""API keys: hashed, scoped, limited, and never more than their user."""

from datetime import timedelta

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient
from rest_framework.views import APIView

from chat.models import Answer, Conversation
from core.api.problems import ApiView
from core.key_limits import KeyScope
from ragsite.accounts.keys import compute_digest, issue_key
from ragsite.models import ApiKey
from retrieval.models import Collection
from tests.support.addresses import addresses
from tests.support.keys import key_of
from tests.support.people import make_reader, make_staff, make_superuser

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_earlier_calls_count():
    cache.clear()


@pytest.fixture
def boss():
    return make_superuser("boss")


@pytest.fixture
def reader():
    return make_reader("reader", password="a long password")


@pytest.fixture
def cellar():
    return Collection.objects.create(slug="cellar", name="Cellar", visibility="public")


def client_with(secret, scheme="Bearer"):
    return APIClient(raise_request_exception=False, HTTP_AUTHORIZATION=f"{scheme} {secret}")


def test_every_endpoint_says_which_scopes_it_takes():
    views = {route: view for _name, route, view in addresses() if issubclass(getattr(view, "cls", object), APIView)}
    assert len(views) > 15
    for route, view in views.items():
        if not view.cls().get_authenticators():
            continue  # the schema and its page: they look at no credentials
        assert issubclass(view.cls, ApiView), route
        assert view.cls.key_scopes, route


@pytest.mark.parametrize(
    ("method", "address", "allowed"),
    [
        ("post", "/api/v1/search/", {KeyScope.SEARCH}),
        ("post", "/api/v1/ask/", {KeyScope.ASK}),
        ("get", "/api/v1/conversations/", {KeyScope.ASK}),
        ("get", "/api/v1/collections/", {KeyScope.SEARCH, KeyScope.ASK, KeyScope.DOCUMENTS_WRITE}),
        ("post", "/api/v1/collections/", set()),
        ("get", "/api/v1/documents/", {KeyScope.SEARCH, KeyScope.DOCUMENTS_WRITE}),
        ("post", "/api/v1/documents/", {KeyScope.DOCUMENTS_WRITE}),
        ("get", "/v1/models", {KeyScope.ASK, KeyScope.SEARCH}),
        ("post", "/v1/chat/completions", {KeyScope.ASK}),
    ],
)
def test_a_key_calls_what_its_scope_is_for(boss, method, address, allowed):
    let_through = set()
    for scope in KeyScope:
        response = getattr(client_with(key_of(boss, scope)), method)(address)
        if response.status_code != 403:
            assert response.status_code in (200, 400, 415)
            let_through.add(scope)
    assert let_through == {KeyScope.ADMIN, *allowed}


def test_the_key_is_not_stored_and_is_recognised_by_both_words(reader):
    issued = issue_key(reader, "Importer", [KeyScope.SEARCH])
    assert issued.secret.startswith(f"{issued.public_id}_")
    assert len(issued.secret) > 50
    assert issued.secret.rpartition("_")[2] not in str(ApiKey.objects.values())
    for scheme in ("Bearer", "Token", "bearer"):
        assert client_with(issued.secret, scheme).get("/api/v1/collections/").status_code == 200
    assert client_with(issued.secret[:-1]).get("/api/v1/collections/").status_code == 401


@pytest.mark.parametrize("how", ["revoked", "expired", "inactive", "deleted", "forgotten"])
@pytest.mark.parametrize("address", ["/api/v1/conversations/", "/v1/models"])
def test_a_key_that_is_over_is_refused_at_the_next_request(reader, how, address):
    issued = issue_key(reader, "Importer", list(KeyScope))
    client = client_with(issued.secret)
    assert client.get(address).status_code == 200
    match how:
        case "revoked":
            issued.revoke()
        case "expired":
            ApiKey.objects.update(expires_at=timezone.now())
        case "inactive":
            User.objects.update(is_active=False)
        case "deleted":
            reader.delete()
        case "forgotten":
            User.objects.update(password="!", last_login=timezone.now() - timedelta(days=31))
            # An account for a program has no provider that could vouch for it.
            assert client.get(address).status_code == 200
            SocialAccount.objects.create(user=reader, provider="sso", uid="reader")
    assert client.get(address).status_code == 401


def test_a_key_gives_no_more_than_its_user_has_at_this_moment(boss, collection):
    client = client_with(key_of(boss))
    assert client.get("/api/v1/documents/").status_code == 200
    Collection.objects.create(slug="staff", name="Staff", visibility="staff")
    assert client.get("/api/v1/collections/").json()["count"] == 2
    User.objects.update(is_superuser=False, is_staff=False)
    assert client.get("/api/v1/documents/").status_code == 403
    assert client.get("/api/v1/collections/").json()["count"] == 1


def test_the_last_use_is_written_once_a_minute(reader):
    client = client_with(key_of(reader))
    client.get("/api/v1/collections/")
    first = ApiKey.objects.get().last_used_at
    with CaptureQueriesContext(connection) as queries:
        client.get("/api/v1/collections/")
    assert not [query for query in queries if query["sql"].startswith("UPDATE")]
    ApiKey.objects.update(last_used_at=first - timedelta(seconds=61))
    client.get("/api/v1/collections/")
    assert ApiKey.objects.get().last_used_at >= first


def test_a_key_has_a_rate_of_its_own(reader):
    slow, other = client_with(key_of(reader, rate="2/min")), client_with(key_of(reader))
    assert [slow.get("/api/v1/collections/").status_code for _ in range(3)] == [200, 200, 429]
    assert other.get("/api/v1/collections/").status_code == 200


class TestLimitedToCollections:
    @pytest.fixture
    def limited(self, boss, collection, ingest, cellar):
        ingest(collection, "pump.md", "# Pump\n\nThe pump weighs 3450 grams.")
        ingest(cellar, "wine.md", "# Wine\n\nThe wine is kept at 12 degrees.")
        return client_with(key_of(boss, collections=[collection]))

    def test_lists_and_uploads_know_nothing_else(self, limited, cellar):
        assert [row["slug"] for row in limited.get("/api/v1/collections/").json()["results"]] == ["library"]
        assert [row["source"] for row in limited.get("/api/v1/documents/").json()["results"]] == ["pump.md"]
        assert limited.get(f"/api/v1/documents/{cellar.documents.get().pk}/").status_code == 404
        assert limited.delete(f"/api/v1/documents/{cellar.documents.get().pk}/").status_code == 404
        assert [row["id"] for row in limited.get("/v1/models").json()["data"]][:-1] == ["ragsite", "ragsite/library"]
        assert limited.get("/v1/models/ragsite/cellar").status_code == 404

        def upload(slug):
            body = {"file": SimpleUploadedFile("a.md", b"# A\n\nWords."), "collection": slug}
            return limited.post("/api/v1/documents/", body, format="multipart").status_code

        assert (upload("cellar"), upload("nowhere"), upload("library")) == (400, 400, 202)
        made = limited.post("/api/v1/collections/", {"slug": "new", "name": "New"}, format="json")
        assert made.status_code == 403

    def test_other_conversations_of_its_user_and_of_others_are_out_of_reach(self, limited, boss, reader):
        answers = []
        for owner in (boss, reader):
            conversation = Conversation.objects.create(owner=owner, title="At home")
            answers.append(
                Answer.objects.create(
                    conversation=conversation, question="Why?", text="So.", status=Answer.Status.COMPLETED
                )
            )
        assert limited.get("/api/v1/conversations/").json()["count"] == 0
        for answer in answers:
            assert limited.get(f"/api/v1/answers/{answer.pk}/").status_code == 404
            assert limited.get(f"/api/v1/answers/{answer.pk}/stream/").status_code == 404
            assert limited.post(f"/api/v1/answers/{answer.pk}/stop/").status_code == 404
            assert limited.get(f"/api/v1/conversations/{answer.conversation_id}/").status_code == 404
            continued = {"question": "Why?", "conversation": str(answer.conversation_id)}
            assert limited.post("/api/v1/ask/", continued, format="json").status_code == 400

    def test_a_key_whose_collections_were_all_deleted_reaches_none(self, limited, collection):
        collection.delete()
        assert limited.get("/api/v1/collections/").json()["count"] == 0
        assert limited.get("/api/v1/documents/").json()["count"] == 0


@pytest.mark.django_db(transaction=True)
def test_a_search_and_a_question_with_a_limited_key_are_answered_from_its_collections_alone(
    boss, collection, cellar, ingest
):
    ingest(collection, "pump.md", "# Pump\n\nThe pump weighs 3450 grams.")
    ingest(cellar, "wine.md", "# Wine\n\nThe wine is kept at 12 degrees.")
    limited, whole = client_with(key_of(boss, collections=[collection])), client_with(key_of(boss))

    def search(query, **scope):
        return limited.post("/api/v1/search/", {"query": query, **scope}, format="json")

    def ask(client):
        return client.post("/api/v1/ask/", {"question": "At how many degrees is the wine kept?"}, format="json").json()

    for query in ("at how many degrees is the wine kept", "how heavy is the pump"):
        assert {hit["document"]["title"] for hit in search(query).json()["results"]} <= {"Pump"}
    assert search("wine", collection="cellar").status_code == 400
    assert "12 degrees" in str(ask(whole)["citations"])
    answer = ask(limited)
    assert "12 degrees" not in str(answer)
    assert "wine.md" not in str(answer)
    saved = Answer.objects.order_by("created_at").last()
    assert saved.asked_within == [collection.pk]
    # Its own conversation can be read with the key; its owner sees both.
    assert limited.get("/api/v1/conversations/").json()["count"] == 1
    assert limited.get(f"/api/v1/answers/{saved.pk}/").status_code == 200
    assert whole.get("/api/v1/conversations/").json()["count"] == 2


def test_keys_are_made_shown_once_and_revoked_on_ones_own_page(client, reader, collection):
    assert client.get("/account/keys/").status_code == 302
    client.force_login(reader)
    made = client.post(
        "/account/keys/",
        {"name": "Laptop", "scopes": ["search"], "collections": [collection.pk], "days": "90", "lists_sources": "on"},
    )
    secret = made.context["issued"].secret
    assert secret in made.content.decode()
    assert "no-store" in made["Cache-Control"]
    again = client.get("/account/keys/").content.decode()
    assert secret not in again
    key = ApiKey.objects.get()
    assert key.public_id in again
    assert (key.user, key.is_limited, list(key.collections.all())) == (reader, True, [collection])
    assert key.lists_sources
    assert "· list of sources" in again
    assert timedelta(days=89) < key.expires_at - timezone.now() <= timedelta(days=90)
    theirs = issue_key(make_reader("other"), "theirs", [KeyScope.ASK])
    assert client.post(f"/account/keys/{theirs.pk}/revoke/").status_code == 404
    assert client.get(f"/account/keys/{key.pk}/revoke/").status_code == 405
    client.post(f"/account/keys/{key.pk}/revoke/")
    assert [row.is_usable for row in ApiKey.objects.order_by("pk")] == [False, True]


def test_one_cannot_choose_a_collection_that_one_may_not_read(client, reader):
    closed = Collection.objects.create(slug="closed", name="Closed", visibility="staff")
    client.force_login(reader)
    sent = {"name": "Laptop", "scopes": ["search"], "collections": [closed.pk], "days": "0"}
    assert "Closed" not in client.post("/account/keys/", sent).content.decode()
    assert not ApiKey.objects.exists()


def test_the_admin_shows_no_digest_makes_none_and_revokes(client, boss, reader):
    client.force_login(boss)
    key = issue_key(reader, "Robot", [KeyScope.ASK])
    for page in ("/admin/ragsite/apikey/", f"/admin/ragsite/apikey/{key.pk}/change/"):
        shown = client.get(page).content.decode()
        assert key.public_id in shown
        assert key.digest not in shown
    assert client.get("/admin/ragsite/apikey/add/").status_code == 403
    assert client.post(f"/admin/ragsite/apikey/{key.pk}/change/", {"scopes": ["admin"]}).status_code == 403
    client.post("/admin/ragsite/apikey/", {"action": "revoke", "_selected_action": [key.pk]})
    key.refresh_from_db()
    assert key.revoked_at is not None
    looker = make_staff("looker", "view_apikey")
    client.force_login(looker)
    assert 'value="revoke"' not in client.get("/admin/ragsite/apikey/").content.decode()


def test_the_command_makes_keys_and_accounts_for_programs(capsys, collection):
    with pytest.raises(CommandError, match="no account named robot"):
        call_command("create_key", "robot")
    call_command(
        "create_key", "robot", "--service", "--scope", "ask", "--collection", "library", "--days", "30",
        "--rate", "5/s", "--list-sources",
    )  # fmt: skip
    key = ApiKey.objects.get(digest=compute_digest(capsys.readouterr().out.strip()))
    assert not key.user.has_usable_password()
    assert (key.scopes, key.is_limited, key.rate, key.lists_sources) == (["ask"], True, "5/s", True)
    with pytest.raises(CommandError, match="Write a rate"):
        call_command("create_key", "robot", "--rate", "often")
    with pytest.raises(CommandError, match="no collection named attic"):
        call_command("create_key", "robot", "--collection", "attic")
