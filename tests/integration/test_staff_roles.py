"""First permissions of the roles of staff, and their views, which the rights in collections decide."""

import html
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import Answer, ApprovedAnswer, Citation, Conversation, Feedback
from evaluation.dashboard.dashboard_figures import compute_activity, compute_distributions
from evaluation.dashboard.scope import parse_scope
from evaluation.models import Judgement, Score
from ragsite.accounts.roles import ROLES, create_roles
from retrieval.models import Collection, CollectionGrant, Document, Draft, Visibility
from tests.support.people import make_reader, make_staff, make_superuser

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _roles():
    create_roles()


def staff(role, name=""):
    user = User.objects.create_user(name or role, is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return User.objects.get(pk=user.pk)


def signed_in(user):
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def pages(document):
    chunk = document.chunks.first()
    return [
        reverse("admin:retrieval_collection_change", args=[document.collection_id]),
        reverse("admin:retrieval_document_change", args=[document.pk]),
        reverse("admin:retrieval_document_original", args=[document.pk]),
        reverse("admin:retrieval_chunk_change", args=[chunk.pk]),
    ]


@pytest.fixture
def vault(ingest):
    collection = Collection.objects.create(slug="vault", name="Vault", visibility=Visibility.GRANTED)
    return ingest(collection, "vault.md", "# Vault\n\nThe vault is under the stairs.")


def test_the_roles_are_there_with_their_permissions():
    assert set(Group.objects.values_list("name", flat=True)) >= set(ROLES)
    assert staff("Curators").has_perms(["retrieval.change_document", "retrieval.add_draft"])
    assert not staff("Evaluators").has_perm("retrieval.change_document")
    assert staff("Auditors").has_perms(["chat.view_answer", "retrieval.view_collection", "auth.view_user"])
    auditor = User.objects.get(username="Auditors")
    assert not any(
        permission.split(".")[1].startswith(("add", "change", "delete")) for permission in auditor.get_all_permissions()
    )
    assert staff("Administrators").has_perms(["auth.change_user", "retrieval.change_collection"])
    # A token of the API is its user.
    assert not any("token" in permission for permission in auditor.get_all_permissions())


def test_a_role_that_somebody_changed_stays_as_it_is():
    Group.objects.get(name="Curators").permissions.clear()
    create_roles()
    assert not Group.objects.get(name="Curators").permissions.exists()


@pytest.mark.parametrize("role", ["Curators", "Auditors", "Administrators"])
def test_staff_do_not_meet_a_collection_that_is_not_granted_to_them(role, vault):
    client = signed_in(staff(role))
    for page in pages(vault):
        response = client.get(page, follow=True)
        assert "under the stairs" not in response.content.decode(), page
        assert response.redirect_chain or response.status_code == 404, page
    assert "Vault" not in client.get(reverse("admin:retrieval_collection_changelist")).content.decode()
    assert client.get("/api/v1/documents/").json()["results"] == []
    assert client.get(f"/api/v1/documents/{vault.pk}/").status_code == 404
    assert client.get(f"/documents/{vault.pk}/").status_code == 404


def test_a_curator_by_grant_changes_documents_and_not_the_collection(vault):
    curator = staff("Curators")
    CollectionGrant.objects.create(collection=vault.collection, user=curator, role=CollectionGrant.Role.CURATOR)
    client = signed_in(curator)
    assert all(client.get(page).status_code == 200 for page in pages(vault))
    collection_page, document_page, *_others = pages(vault)
    client.post(document_page, {"title": "Cellar", "url": "", "language": "en", "metadata": "{}"})
    vault.refresh_from_db()
    assert vault.title == "Cellar"
    assert 'name="visibility"' not in client.get(collection_page).content.decode()
    body = {"name": "Open", "slug": "vault", "visibility": "public", "text_search_configuration": "english"}
    assert client.post(collection_page, body).status_code == 403
    # A lost right is lost at the next request.
    CollectionGrant.objects.all().delete()
    assert client.get(document_page).status_code == 302
    assert client.delete(f"/api/v1/documents/{vault.pk}/").status_code in (403, 404)
    assert Document.objects.filter(pk=vault.pk).exists()


def answer_from(document, word):
    answer = Answer.objects.create(
        conversation=Conversation.objects.create(title=f"Where is the {word}?"),
        collection=document.collection,
        question=f"Where is the {word}?",
        text=f"The {word} is there [1].",
        status=Answer.Status.COMPLETED,
        completed_at=timezone.now(),
        source_collections=[document.collection_id],
        source_documents=[document.pk],
    )
    Citation.objects.create(
        answer=answer, marker=1, marker_start=10, marker_end=13, document=document, document_title=document.title,
        quote=f"The {word} is there.", start=0, end=10,
    )  # fmt: skip
    Feedback.objects.create(answer=answer, helpful=False)
    judgement = Judgement.objects.create(answer=answer, judge="offline", status="done")
    Score.objects.create(judgement=judgement, metric="groundedness", score=0.1, threshold=0.5)
    return answer


def pages_about(answer):
    return [
        reverse("admin:chat_answer_change", args=[answer.pk]),
        reverse("admin:chat_conversation_change", args=[answer.conversation_id]),
        reverse("admin:evaluation_judgement_change", args=[Judgement.objects.get(answer=answer).pk]),
        reverse("chat:debug", args=[answer.pk]),
    ]


@pytest.mark.parametrize("fate", ["kept", "deleted"])
def test_a_curator_sees_the_answers_of_the_collections_that_are_open(vault, ingest, fate):
    safe = Collection.objects.create(slug="safe", name="Safe", visibility=Visibility.GRANTED)
    theirs = answer_from(ingest(safe, "safe.md", "# Safe\n\nThe safe is in the attic."), "attic")
    hidden = answer_from(vault, "stairs")
    curator = staff("Curators")
    CollectionGrant.objects.create(collection=safe, user=curator, role=CollectionGrant.Role.CURATOR)
    if fate == "deleted":
        # Its grants are lost; another granted collection stays closed to the curator.
        Collection.objects.create(slug="chest", name="Chest", visibility=Visibility.GRANTED)
        vault.collection.delete()
    client = signed_in(curator)
    dashboard = reverse("admin:evaluation_dashboard_changelist")
    lists = [
        reverse(f"admin:{name}_changelist") for name in ("chat_answer", "chat_conversation", "evaluation_judgement")
    ]
    gaps = reverse("admin:evaluation_dashboard_gaps")
    for page in (dashboard, gaps, *lists, *pages_about(theirs)):
        response = client.get(page)
        assert response.status_code == 200, page
        html = response.content.decode()
        assert not any(word in html for word in ("stairs", "Vault", str(hidden.pk))), page
        assert "attic" in html or page == gaps, page
    for page in pages_about(hidden):
        response = client.get(page)
        assert response.status_code in (302, 404), page
        assert "stairs" not in client.get(page, follow=True).content.decode(), page
    # The figures count what may be seen.
    scope = parse_scope({}, curator)
    assert compute_activity(scope)[1].asked_count == 1
    assert [(found.metric, found.measured_count) for found in compute_distributions(scope)] == [("groundedness", 1)]
    assert compute_activity(parse_scope({}, make_superuser("boss")))[1].asked_count == 2


def test_a_manager_grants_and_takes_away(vault):
    manager = staff("Curators", "manager")
    reader = make_reader("reader")
    CollectionGrant.objects.create(collection=vault.collection, user=manager, role=CollectionGrant.Role.MANAGER)
    page = reverse("admin:retrieval_collection_change", args=[vault.collection_id])
    client = signed_in(manager)
    assert 'name="grants-0-role"' in client.get(page).content.decode()
    own = CollectionGrant.objects.get()
    body = {
        "name": "Vault", "slug": "vault", "description": "", "visibility": "granted",
        "text_search_configuration": "english", "grants-TOTAL_FORMS": "2", "grants-INITIAL_FORMS": "1",
        "grants-0-id": str(own.pk), "grants-0-collection": str(vault.collection_id), "grants-0-group": "",
        "grants-0-user": str(manager.pk), "grants-0-role": "manager", "grants-1-id": "",
        "grants-1-collection": str(vault.collection_id), "grants-1-group": "", "grants-1-user": str(reader.pk),
        "grants-1-role": "reader", "filters-TOTAL_FORMS": "0", "filters-INITIAL_FORMS": "0",
    }  # fmt: skip
    theirs = signed_in(reader)
    assert theirs.get(f"/documents/{vault.pk}/").status_code == 404
    saved = client.post(page, body, follow=True).content.decode()
    assert theirs.get(f"/documents/{vault.pk}/").status_code == 200
    assert "staff status, " not in saved
    # Whoever is to change the collection needs the management pages.
    body |= {"grants-INITIAL_FORMS": "2", "grants-1-id": str(CollectionGrant.objects.get(user=reader).pk)}
    saved = client.post(page, body | {"grants-1-role": "curator"}, follow=True).content.decode()
    assert "Without staff status, reader cannot open these pages." in saved
    CollectionGrant.objects.filter(user=reader).delete()
    assert theirs.get(f"/documents/{vault.pk}/").status_code == 404


def test_who_makes_a_collection_that_nobody_else_sees_manages_it():
    maker = staff("Administrators")
    body = {"slug": "new", "name": "New", "visibility": "granted"}
    client = signed_in(maker)
    assert client.post("/api/v1/collections/", body, content_type="application/json").status_code == 201
    assert CollectionGrant.objects.get().role == CollectionGrant.Role.MANAGER
    assert Collection.objects.readable_by(maker).get().slug == "new"


def test_an_administrator_makes_no_superuser():
    client = signed_in(staff("Administrators"))
    page = reverse("admin:auth_user_change", args=[make_superuser("boss").pk])
    assert client.post(page, {"username": "taken"}).status_code == 403
    own = reverse("admin:auth_user_change", args=[User.objects.get(username="Administrators").pk])
    assert 'name="is_superuser"' not in client.get(own).content.decode()


def test_a_curator_drafts_a_collection_for_staff_and_no_granted_one(vault, collection):
    client = signed_in(staff("Curators"))
    begin = reverse("admin:retrieval_draft_begin", args=[collection.pk])
    page = client.post(begin, follow=True).content.decode()
    draft = Draft.objects.get()
    assert str(draft) in page
    assert client.get(reverse("admin:retrieval_draft_change", args=[draft.pk])).status_code == 200
    assert client.post(reverse("admin:retrieval_draft_begin", args=[vault.collection_id])).status_code == 404
    # The working copy goes with its collection.
    Collection.objects.filter(pk=collection.pk).update(visibility=Visibility.GRANTED)
    assert client.get(reverse("admin:retrieval_draft_change", args=[draft.pk])).status_code == 302
    assert not Collection.objects.readable_by(User.objects.get(username="Curators")).filter(draft=draft).exists()


def test_the_first_page_says_what_waits(ingest, collection):
    client = signed_in(staff("Curators"))
    front = reverse("admin:index")
    assert "Nothing failed, no question is unanswered, and nothing is due." in client.get(front).content.decode()
    document = ingest(collection, "leave.md", "# Leave\n\nThere are 25 days of leave.")
    yesterday = timezone.localdate() - timedelta(days=1)
    Document.objects.filter(pk=document.pk).update(review_on=yesterday)
    Document.objects.create(collection=collection, source="broken.pdf", status=Document.Status.FAILED)
    Answer.objects.create(
        conversation=Conversation.objects.create(), question="May I fly?", status="completed", refused=True,
        search_method="zscore", completed_at=timezone.now(),
    )  # fmt: skip
    ApprovedAnswer.objects.create(question="Q", text="A", collection=collection, state="approved", flag="changed")
    ApprovedAnswer.objects.create(
        question="Soon", text="A", collection=collection, state="approved", expires_on=timezone.localdate()
    )
    page = client.get(front).content.decode()
    said = re.findall(r"<a href=\"([^\"]+)\"><b>1</b><span>([^<]+)</span>", page)
    assert [sentence for _address, sentence in said] == [
        "1 document could not be read.",
        "1 question was not answered well.",
        "1 approved answer has to be looked at.",
        "1 approved answer expires soon.",
        "1 document is due for a review.",
    ]
    for address, _sentence in said:
        assert client.get(html.unescape(address)).status_code == 200
    hidden = Collection.objects.create(slug="hidden", name="Hidden", visibility=Visibility.GRANTED)
    Document.objects.update(collection=hidden)
    ApprovedAnswer.objects.update(collection=hidden)
    assert "1 question was not answered well." in client.get(front).content.decode()
    assert "document could not be read" not in client.get(front).content.decode()


def test_the_daily_cards_count_what_the_account_may_see(ingest, collection, vault):
    client = signed_in(staff("Curators"))
    document = ingest(collection, "leave.md", "# Leave\n\nThere are 25 days of leave.")
    Document.objects.filter(pk=document.pk).update(review_on=timezone.localdate())
    for status in ("failed", "pending", "processing"):
        Document.objects.create(collection=collection, source=f"{status}.pdf", status=status)
    copy = Collection.objects.create(slug="copy", name="Copy")
    Draft.objects.create(collection=collection, working_copy=copy, status=Draft.Status.OPEN)
    Document.objects.create(collection=copy, source="copied.pdf", status="failed")
    for days, refused in ((0, False), (1, True), (20, False)):
        Answer.objects.create(
            conversation=Conversation.objects.create(), question="May I fly?", status="completed", refused=refused,
            search_method="zscore", completed_at=timezone.now() - timedelta(days=days),
        )  # fmt: skip

    def read_cards(client):
        page = client.get(reverse("admin:index")).content.decode()
        cards = re.findall(r'<strong>([^<]+)</strong><span class="dashboard-figure">(.*?)</span>', page)
        return {name: re.sub("<[^>]+>", "", said) for name, said in cards}

    shown = read_cards(client)
    assert shown["Documents"] == "4 documents · 2 waiting · 1 failed · 1 due for a review"
    assert shown["Collections"] == "1 collection"
    assert shown["Answers"] == "2 new this week · 1 without an answer"
    assert shown["Drafts"] == "1 open"
    assert shown["Gaps in the documents"] == "1 question in 30 days"
    boss = signed_in(make_superuser("boss"))
    assert read_cards(boss)["Documents"].startswith("5 documents")
    assert read_cards(boss)["Collections"].startswith("2 collections")

    plain = make_staff("plain", "view_collection")
    assert set(read_cards(signed_in(plain))) == {"Collections"}


def test_models_are_in_one_daily_group_and_four_for_experts(admin_client):
    groups = signed_in(staff("Curators")).get(reverse("admin:index")).context["app_list"]
    names = [[str(model["object_name"]) for model in group["models"]] for group in groups]
    assert names[0] == ["Document", "Collection", "Dashboard", "Gaps", "Answer", "ApprovedAnswer", "Draft", "Source"]
    assert "Chunk" in sum(names[1:], [])
    everything = admin_client.get(reverse("admin:index")).context["app_list"]
    assert [group["app_label"] for group in everything] == ["daily", "people", "models", "measuring", "programs"]
    shown = [model["admin_url"] for group in everything for model in group["models"]]
    assert len(shown) == len(set(shown))
    assert reverse("admin:retrieval_searchprofile_playground") in shown


@pytest.mark.parametrize(("name", "marked"), [("changelist", "dashboard"), ("gaps", "gaps")])
def test_the_navigation_marks_one_page(name, marked):
    address = reverse(f"admin:evaluation_dashboard_{name}")
    html = signed_in(staff("Curators")).get(address).content.decode()
    assert re.findall(r'class="model-(\w+) current-model"', html) == [marked]


@pytest.mark.parametrize("visibility", ["granted", "public", "staff"])
def test_a_curator_adds_a_collection_and_manages_it(visibility):
    client = signed_in(staff("Curators"))
    form = client.get(reverse("admin:retrieval_collection_add")).content.decode()
    assert re.search(r'value="granted"[^>]* checked', form)
    body = {
        "name": "New", "slug": "new", "description": "", "visibility": visibility,
        "text_search_configuration": "english",
        "grants-TOTAL_FORMS": "0", "grants-INITIAL_FORMS": "0",
        "filters-TOTAL_FORMS": "0", "filters-INITIAL_FORMS": "0",
    }  # fmt: skip
    assert client.post(reverse("admin:retrieval_collection_add"), body).status_code == 302
    page = reverse("admin:retrieval_collection_change", args=[Collection.objects.get(slug="new").pk])
    assert client.post(page, {**body, "name": "Newer", "visibility": "granted"}).status_code == 302
    changed = Collection.objects.get(slug="new")
    assert (changed.name, changed.visibility) == ("Newer", "granted")
    assert client.post(page, {**body, "name": "Newest"}).status_code == 302


def test_a_document_names_who_added_it_and_when_it_is_due(collection):
    curator = staff("Curators")
    client = signed_in(curator)
    upload = {"collection": collection.pk, "text": "There are 25 days of leave.", "text_name": "Leave"}
    client.post(reverse("admin:retrieval_document_add"), upload)
    assert Document.objects.get().added_by == curator
    Document.objects.update(review_on=timezone.localdate())
    page = client.get(reverse("admin:retrieval_document_changelist") + "?review=due").content.decode()
    assert "due since" in page
    assert "Leave" in page
    assert "Leave" not in client.get(reverse("admin:retrieval_document_changelist") + "?review=none").content.decode()
