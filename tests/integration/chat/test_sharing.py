"""Parts of a shared conversation that each reader may read."""

import uuid

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.conversations import sharing
from chat.conversations.history import REMEMBERED_TURNS
from chat.models import Answer, Conversation
from retrieval.models import Collection
from tests.support.asking import client_of, saved_answer
from tests.support.libraries import remembered
from tests.support.people import make_reader, make_staff

pytestmark = pytest.mark.django_db

WITHHELD = "This answer quotes documents that you may not read."


def answered(conversation, question, *documents, **others):
    values = {"text": f"It weighs 3450 grams, says {question} [1].", "completed_question": f"Completed: {question}"}
    return saved_answer(conversation, question, *documents, **values | others)


@pytest.fixture
def conversation(owner):
    return Conversation.objects.create(owner=owner, title="Weights")


@pytest.fixture
@remembered
def document(collection, ingest):
    return ingest(collection, "sheet.txt", "The pump weighs 3450 grams.")


@pytest.fixture
def private(ingest):
    closed = Collection.objects.create(slug="closed", name="Closed", visibility="staff")
    return ingest(closed, "secret.txt", "The secret pump weighs 1 gram.")


def link_to(conversation):
    return f"/s/{sharing.share_conversation(conversation)}/"


def test_whoever_has_the_link_reads_the_conversation_and_can_do_nothing_else(conversation, document, owner):
    answer = answered(conversation, "one", document)
    mine, reader = client_of(owner), Client()
    assert "entry-shared" not in mine.get("/").content.decode()
    response = reader.get(link_to(conversation))
    assert response.status_code == 200
    page = response.content.decode()
    assert "says one" in page
    assert f"/documents/{document.pk}/?start=16&amp;end=26#passage" in page
    for absent in ("<textarea", "hx-post", "Stop sharing"):
        assert absent not in page
    assert response["X-Robots-Tag"] == "noindex, nofollow"
    assert '<meta name="robots" content="noindex, nofollow">' in page
    assert reader.get(f"/c/{conversation.pk}/").status_code == 404
    assert reader.post(f"/answers/{answer.pk}/feedback/", {"verdict": "no"}).status_code == 404
    assert reader.get(f"/answers/{answer.pk}/stream/").status_code == 404
    assert "entry-shared" in mine.get("/").content.decode()


def test_answers_from_documents_that_the_reader_may_not_read_are_left_out(conversation, document, private):
    answered(conversation, "open", document)
    answered(conversation, "mixed", document, private)
    link = link_to(conversation)
    page = Client().get(link).content.decode()
    assert "says open" in page
    assert "mixed" not in page
    assert page.count(WITHHELD) == 1
    staff = make_staff("staff")
    assert "says mixed" in client_of(staff).get(link).content.decode()
    # The document's rights are lost with it.
    document.delete()
    assert Client().get(link).content.decode().count(WITHHELD) == 2
    bare = Answer.objects.create(conversation=conversation, question="x", status=Answer.Status.COMPLETED)
    assert sharing.find_withheld_shared_answers(None, [bare]) == frozenset()


def test_a_link_that_was_taken_back_leads_nowhere(conversation):
    link = link_to(conversation)
    sharing.stop_sharing(conversation)
    for gone in (link, f"/s/{uuid.uuid4()}/"):
        response = Client().get(gone)
        assert response.status_code == 404
        assert "This conversation is not shared" in response.content.decode()
        assert response["X-Robots-Tag"] == "noindex, nofollow"
    assert link_to(conversation) != link


def test_only_the_owner_shares_and_stops(conversation, document, owner):
    strangers = [Client(), client_of(make_staff("staff"))]
    for stranger in strangers:
        assert stranger.post(f"/c/{conversation.pk}/share/").status_code == 404
    mine = client_of(owner)
    other = answered(Conversation.objects.create(title="Theirs"), "theirs", document)
    foreign = {"scope": "answer", "audience": "link", "answer": str(other.pk)}
    assert mine.post(f"/c/{conversation.pk}/share/", foreign).status_code == 422
    conversation.refresh_from_db()
    assert conversation.share_token is None
    assert mine.post(f"/c/{conversation.pk}/share/").status_code == 422
    assert mine.post(f"/c/{conversation.pk}/share/", {"scope": "now", "audience": "link"}).status_code == 302
    for stranger in strangers:
        assert stranger.post(f"/c/{conversation.pk}/stop-sharing/").status_code == 404
    conversation.refresh_from_db()
    assert conversation.share_token is not None
    assert "Stop sharing" in mine.get(f"/s/{conversation.share_token}/").content.decode()
    mine.post(f"/c/{conversation.pk}/stop-sharing/")
    conversation.refresh_from_db()
    assert (conversation.share_token, conversation.shared_at) == (None, None)


def test_a_site_that_asks_for_a_login_asks_readers_of_links_too(conversation, settings):
    settings.CHAT_REQUIRES_LOGIN = True
    link = link_to(conversation)
    response = Client().get(link)
    assert response.status_code == 302
    assert f"next={link}" in response["Location"]
    assert client_of(make_reader("reader")).get(link).status_code == 200


def withheld(*conversations):
    """Return the questions whose answers a stranger does not see."""
    answers = [answer for conversation in conversations for answer in conversation.answers.all()]
    hidden = sharing.find_withheld_shared_answers(None, answers)
    return [answer.question for answer in answers if answer.pk in hidden]


def test_what_may_say_again_what_was_withheld_is_left_out_too(conversation, document, private, owner):
    answered(conversation, "refused", private, refused=True)
    answered(conversation, "a refusal told nothing", document)
    answered(conversation, "secret", private, completed_question="")
    answered(conversation, "and then", document)
    answered(conversation, "by a model", document, completed_question="", prompt_version=2)
    answered(conversation, "stands alone", document, completed_question="")
    other = Conversation.objects.create(owner=owner, title="Heights")
    answered(other, "elsewhere", document)
    assert withheld(conversation, other) == ["refused", "secret", "and then", "by a model"]


def test_it_goes_from_answer_to_answer_as_far_as_they_are_remembered(conversation, document, private):
    answered(conversation, "secret", private)
    for number in range(REMEMBERED_TURNS):
        answered(conversation, f"alone {number}", document, completed_question="")
    answered(conversation, "too late", document)
    assert withheld(conversation) == ["secret"]
    answered(conversation, "another secret", private, completed_question="")
    answered(conversation, "retold", document)
    answered(conversation, "retold again", document)
    assert withheld(conversation) == ["secret", "another secret", "retold", "retold again"]


def test_later_questions_are_read_only_where_that_was_chosen(conversation, document):
    answered(conversation, "first", document)
    link = link_to(conversation)
    later = answered(conversation, "later", document)
    reader = Client()
    assert "later" not in reader.get(link).content.decode()
    sharing.share_conversation(conversation, Conversation.ShareScope.FOLLOWING)
    assert "later" in reader.get(link).content.decode()
    sharing.share_conversation(conversation, Conversation.ShareScope.ANSWER, answer=later)
    page = reader.get(link).content.decode()
    assert "says later" in page
    assert "first" not in page
    # The title is not shown either, because it belongs to the whole conversation.
    assert "Weights" not in page
    later.delete()
    assert reader.get(link).status_code == 404


def test_a_link_for_accounts_lets_nobody_else_in(conversation, document):
    answered(conversation, "one", document)
    link = link_to(conversation)
    sharing.share_conversation(conversation, audience=Conversation.ShareAudience.SIGNED_IN)
    assert Client().get(link).status_code == 404
    reader = make_reader("reader")
    theirs = client_of(reader)
    assert "says one" in theirs.get(link).content.decode()
    User.objects.filter(pk=reader.pk).update(is_active=False)
    assert theirs.get(link).status_code == 404
