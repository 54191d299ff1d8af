"""Why somebody sees, or does not see, a collection, a document or an answer: what is said is what the queries do."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.urls import reverse

from chat.conversations.rights import explain_answer
from chat.models import Answer, Conversation
from ragsite.accounts.roles import create_roles
from retrieval.models import Collection, CollectionGrant, Draft, Visibility
from retrieval.rights.reasons import explain_collection, explain_document

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    create_roles()
    care = Group.objects.create(name="care")
    made = {
        "visitor": AnonymousUser(),
        "reader": User.objects.create_user("reader"),
        "nurse": User.objects.create_user("nurse"),
        "gone": User.objects.create_user("gone", is_active=False),
        "staff": User.objects.create_user("staff", is_staff=True),
        "curator": User.objects.create_user("curator", is_staff=True),
        "boss": User.objects.create_superuser("boss"),
    }
    made["nurse"].groups.add(care)
    made["curator"].groups.add(Group.objects.get(name="Curators"))
    return made


SEEN = {
    "public": "visitor reader nurse gone staff curator boss",
    "signed_in": "reader nurse staff curator boss",
    "staff": "staff curator boss",
    "granted": "nurse boss",
}


@pytest.mark.parametrize("visibility", Visibility.values)
def test_of_a_collection(visibility, people):
    collection = Collection.objects.create(slug="c", name="Care home", visibility=visibility)
    if visibility == Visibility.GRANTED:
        CollectionGrant.objects.create(collection=collection, group=Group.objects.get(name="care"))
    reasons = {name: explain_collection(person, collection) for name, person in people.items()}
    assert " ".join(name for name, reason in reasons.items() if reason.is_seen) == SEEN[visibility]
    assert reasons["boss"].rule == "Superusers read everything."
    if visibility == Visibility.GRANTED:
        assert reasons["nurse"].rule == "The group care has a grant in Care home: reader: asks it."
        assert "This account and its groups have none" in reasons["staff"].rule
        assert "switched off" in reasons["gone"].rule


@pytest.mark.parametrize(
    ("narrowed", "seen", "said"),
    [
        (None, "visitor reader nurse gone staff curator boss", {}),
        (["care", "law"], "nurse curator boss", {
            "nurse": "Its metadata limit it to groups, and the account is in care.",
            "reader": "Its metadata limit it to the groups care, law, and the account is in none of them.",
            "curator": "the account may change the documents of Library",
        }),
        (7, "curator boss", {"nurse": "“7” under groups in its metadata is not the name of a group"}),
    ],
)  # fmt: skip
def test_of_a_document(narrowed, seen, said, people, collection, ingest):
    document = ingest(collection, "leave.md", "There are 25 days of leave.")
    document.metadata = {} if narrowed is None else {"groups": narrowed}
    document.save()
    reasons = {name: explain_document(person, document) for name, person in people.items()}
    assert " ".join(name for name, reason in reasons.items() if reason.is_seen) == seen
    for name, sentence in said.items():
        assert sentence in reasons[name].rule


def test_of_a_working_copy(people, collection):
    copy = Collection.objects.create(slug="copy", name="Copy")
    Draft.objects.create(collection=collection, working_copy=copy, status=Draft.Status.OPEN)
    reasons = {name: explain_collection(person, copy) for name, person in people.items()}
    assert " ".join(name for name, reason in reasons.items() if reason.is_seen) == "staff curator boss"
    assert "change the documents of Library" in reasons["reader"].rule


def test_of_an_answer(people, collection, ingest):
    document = ingest(collection, "leave.md", "There are 25 days of leave.")
    answer = Answer.objects.create(
        conversation=Conversation.objects.create(owner=people["nurse"]), question="How many days?", status="completed",
        source_documents=[document.pk], source_collections=[collection.pk],
    )  # fmt: skip
    assert explain_answer(people["nurse"], answer).is_seen
    assert "may not view the answers of others" in explain_answer(people["reader"], answer).rule
    assert explain_answer(people["curator"], answer).is_seen
    document.metadata = {"groups": ["law"]}
    document.save()
    reason = explain_answer(people["nurse"], answer)
    assert not reason.is_seen
    assert "It rests on “" in reason.rule
    assert "the groups law" in reason.rule
    document.delete()
    assert explain_answer(people["nurse"], answer).is_seen


def test_the_page(people, collection, client):
    hidden = Collection.objects.create(slug="vault", name="Vault", visibility=Visibility.GRANTED)
    client.force_login(people["curator"])
    page = reverse("admin:why")
    assert "is open to everybody" in client.get(page, {"collection": collection.pk, "account": ""}).content.decode()
    told = client.get(page, {"collection": collection.pk, "account": "nobody"}).content.decode()
    assert "There is no such account." in told
    for asked in ({"collection": hidden.pk}, {"collection": "x"}, {"answer": "x"}, {}, {"document": 1}):
        assert client.get(page, {**asked, "account": "reader"}).status_code == 404
    shown = client.get(reverse("admin:retrieval_collection_change", args=[collection.pk])).content.decode()
    assert f"{page}?collection={collection.pk}" in shown
    client.force_login(people["staff"])
    assert client.get(page, {"collection": collection.pk, "account": "reader"}).status_code == 404
