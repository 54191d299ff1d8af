"""Why somebody sees, or does not see, a collection, a document or an answer: what is said is what the queries do."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.urls import reverse

from chat.conversations import sharing
from chat.conversations.rights import explain_answer_access
from chat.models import Answer, Conversation
from ragsite.accounts.roles import create_roles
from ragsite.models import ApiKey
from retrieval.models import Collection, CollectionGrant, Draft, Visibility
from retrieval.rights.audience import ReaderKind, list_accounts, list_collection_readers, list_document_readers
from retrieval.rights.reasons import explain_collection_access, explain_document_access
from tests.support.people import make_reader, make_staff, make_superuser

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    create_roles()
    care = Group.objects.create(name="care")
    made = {
        "visitor": AnonymousUser(),
        "reader": make_reader("reader"),
        "nurse": make_reader("nurse"),
        "gone": make_reader("gone", is_active=False),
        "staff": make_staff("staff"),
        "curator": make_staff("curator"),
        "boss": make_superuser("boss"),
    }
    made["nurse"].groups.add(care)
    made["curator"].groups.add(Group.objects.get(name="Curators"))
    return made


def assert_same(readers, reasons, people):
    """Assert that the list of readers has those accounts, and visitors, that a reason lets read."""
    listed = set(list_accounts(readers).values_list("username", flat=True))
    if any(each.kind is ReaderKind.VISITORS for each in readers):
        listed |= {"visitor"}
    active = {name for name, person in people.items() if person.is_active or name == "visitor"}
    assert listed == {name for name, reason in reasons.items() if reason.is_seen} & active


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
    reasons = {name: explain_collection_access(person, collection) for name, person in people.items()}
    assert " ".join(name for name, reason in reasons.items() if reason.is_seen) == SEEN[visibility]
    assert reasons["boss"].rule == "Superusers read everything."
    assert_same(list_collection_readers(collection), reasons, people)
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
    reasons = {name: explain_document_access(person, document) for name, person in people.items()}
    assert " ".join(name for name, reason in reasons.items() if reason.is_seen) == seen
    for name, sentence in said.items():
        assert sentence in reasons[name].rule
    assert_same(list_document_readers(document), reasons, people)


@pytest.mark.parametrize("visibility", Visibility.values)
def test_lists_agree_with_reasons_for_grants_and_restricted_documents(visibility, people, collection, ingest):
    document = ingest(collection, "leave.md", "There are 25 days of leave.")
    document.metadata = {"groups": ["care"]}
    document.save()
    Collection.objects.filter(pk=collection.pk).update(visibility=visibility)
    document.refresh_from_db()
    care = Group.objects.get(name="care")
    for grants in ([], [{"user": people["reader"]}], [{"user": people["reader"], "role": "curator"}, {"group": care}]):
        collection.grants.all().delete()
        for grant in grants:
            CollectionGrant.objects.create(collection=collection, **grant)
        reasons = {name: explain_document_access(person, document) for name, person in people.items()}
        assert_same(list_document_readers(document), reasons, people)


def test_of_a_working_copy(people, collection):
    copy = Collection.objects.create(slug="copy", name="Copy")
    Draft.objects.create(collection=collection, working_copy=copy, status=Draft.Status.OPEN)
    reasons = {name: explain_collection_access(person, copy) for name, person in people.items()}
    assert " ".join(name for name, reason in reasons.items() if reason.is_seen) == "staff curator boss"
    assert_same(list_collection_readers(copy), reasons, people)
    assert "change the documents of Library" in reasons["reader"].rule


def test_of_an_answer(people, collection, ingest):
    document = ingest(collection, "leave.md", "There are 25 days of leave.")
    answer = Answer.objects.create(
        conversation=Conversation.objects.create(owner=people["nurse"]), question="How many days?", status="completed",
        source_documents=[document.pk], source_collections=[collection.pk],
    )  # fmt: skip
    assert explain_answer_access(people["nurse"], answer).is_seen
    assert "may not view the answers of others" in explain_answer_access(people["reader"], answer).rule
    assert explain_answer_access(people["curator"], answer).is_seen
    document.metadata = {"groups": ["law"]}
    document.save()
    reason = explain_answer_access(people["nurse"], answer)
    assert not reason.is_seen
    assert "It rests on “" in reason.rule
    assert "the groups law" in reason.rule
    document.delete()
    assert explain_answer_access(people["nurse"], answer).is_seen


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


def make_key(user, name, **values):
    return ApiKey.objects.create(user=user, name=name, public_id=name, digest=name, scopes=["ask"], **values)


def rows_of(client, **asked):
    return [(row.who, row.number) for row in client.get(reverse("admin:why"), asked).context["readers"].rows]


def test_the_page_lists_who_may_read(people, collection, client, settings):
    Collection.objects.filter(pk=collection.pk).update(visibility=Visibility.STAFF)
    care = Group.objects.get(name="care")
    CollectionGrant.objects.create(collection=collection, group=care)
    CollectionGrant.objects.create(collection=collection, user=people["reader"])
    CollectionGrant.objects.create(collection=collection, user=people["gone"])
    key, limited = (
        ApiKey.objects.create(user=people["reader"], name=n, public_id=n, digest=n, scopes=["ask"]) for n in ("a", "b")
    )
    ApiKey.objects.filter(pk=limited.pk).update(is_limited=True)
    ApiKey.objects.create(user=make_reader("stranger"), name="c", public_id="c", digest="c", scopes=["ask"])
    client.force_login(people["boss"])
    assert rows_of(client, collection=collection.pk) == [
        ("Staff", "3 accounts"), ("The group care", "1 member"), ("gone", "switched off"), ("reader", ""),
        ("Superusers", "1 account"), ("API keys", "1 key"),
    ]  # fmt: skip
    page = client.get(reverse("admin:why"), {"collection": collection.pk}).content.decode()
    assert '<option value="nurse">' in page
    assert str(key) in page
    similar = client.get(reverse("admin:why"), {"collection": collection.pk, "account": "read"}).content.decode()
    assert f'<a href="?collection={collection.pk}&amp;account=reader">reader</a>' in similar
    Collection.objects.filter(pk=collection.pk).update(visibility=Visibility.PUBLIC)
    assert rows_of(client, collection=collection.pk)[:2] == [
        ("Visitors without an account", ""), ("Everybody who has signed in", "6 accounts"),
    ]  # fmt: skip
    settings.CHAT_REQUIRES_LOGIN = True
    assert rows_of(client, collection=collection.pk)[0] == ("Everybody who has signed in", "6 accounts")


def test_a_curator_learns_no_names_from_the_list(people, collection, client):
    CollectionGrant.objects.create(collection=collection, user=people["reader"])
    CollectionGrant.objects.create(collection=collection, group=Group.objects.get(name="care"))
    make_key(people["nurse"], "ward")
    client.force_login(people["curator"])
    rows = rows_of(client, collection=collection.pk)
    assert ("Members of groups", "1 account") in rows
    assert ("Single accounts", "1 account") in rows
    page = client.get(reverse("admin:why"), {"collection": collection.pk, "account": "read"}).content.decode()
    for name in ("reader", "nurse", "care", "ward", "datalist"):
        assert name not in page.partition('id="content-main"')[2].replace("readers", ""), name
    CollectionGrant.objects.create(collection=collection, user=people["curator"], role="manager")
    assert ("reader", "") in rows_of(client, collection=collection.pk)


def test_long_lists_are_cut(people, collection, client):
    many = User.objects.bulk_create(User(username=f"user{number:02}") for number in range(60))
    CollectionGrant.objects.bulk_create(CollectionGrant(collection=collection, user=user) for user in many)
    client.force_login(people["boss"])
    page = client.get(reverse("admin:why"), {"collection": collection.pk}).content.decode()
    assert '<th scope="row">user49</th>' in page
    assert '<th scope="row">user50</th>' not in page
    assert "and 10 more" in page
    assert page.count("<option value=") == 50


def test_a_group_that_the_site_does_not_have_is_named_as_such(people, collection, client, ingest):
    Group.objects.create(name="empty")
    document = ingest(collection, "leave.md", "There are 25 days of leave.", metadata={"groups": ["Care", "empty"]})
    client.force_login(people["boss"])
    rows = rows_of(client, document=document.pk)
    assert [row for row in rows if row[0].startswith("The group")] == [
        ("The group Care", "does not exist"), ("The group empty", "0 members"),
    ]  # fmt: skip


def test_who_may_read_an_answer(people, collection, client, ingest):
    document = ingest(collection, "leave.md", "There are 25 days of leave.")
    answer = Answer.objects.create(
        conversation=Conversation.objects.create(owner=people["nurse"]), question="How many days?", status="completed",
        source_documents=[document.pk], source_collections=[collection.pk],
    )  # fmt: skip
    make_key(people["nurse"], "own")
    make_key(people["nurse"], "none", is_limited=True)
    client.force_login(people["boss"])
    assert rows_of(client, answer=answer.pk) == [("nurse", ""), ("boss", ""), ("curator", ""), ("API keys", "1 key")]
    client.force_login(people["curator"])
    assert rows_of(client, answer=answer.pk) == [("nurse", ""), ("Staff", "2 accounts"), ("API keys", "1 key")]
    sharing.share_conversation(answer.conversation)
    assert ("Everybody with the link", "") in rows_of(client, answer=answer.pk)
    document.metadata = {"groups": ["law"]}
    document.save()
    assert rows_of(client, answer=answer.pk)[1:] == [("Staff", "2 accounts")]
