"""A reader who follows an answer gets one mail for each change of it, with words that he may read."""

import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from chat.conversations import sharing
from chat.curation import followed_upkeep
from chat.curation.followed_upkeep import create_change_notices, send_notice
from chat.models import ChangeNotice, Citation, Conversation, FollowedAnswer
from core.job_queue import enqueue_forgotten_jobs, sweeping
from retrieval.models import Collection, DocumentText
from tests.support.asking import client_of, saved_answer
from tests.support.libraries import remembered
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db

LEAVE = "# Leave\n\nEmployees have 25 days of leave a year. Days that are left lapse in July."
QUOTE = "Employees have 25 days of leave a year."


@pytest.fixture(autouse=True)
def with_mail(settings):
    settings.MAIL_IS_SENT = True


@pytest.fixture
def owner(owner):
    owner.email = "owner@example.org"
    owner.save()
    return owner


@pytest.fixture
@remembered
def document(collection, ingest):
    return ingest(collection, "leave.md", LEAVE)


@pytest.fixture
def conversation(owner):
    return Conversation.objects.create(owner=owner, title="Leave")


@pytest.fixture
def answer(conversation, document):
    answer = saved_answer(conversation, "How many days?", document, text="You have 25 days [1].")
    version = DocumentText.objects.get(document=document).version
    Citation.objects.update(quote=QUOTE, section="Leave", text_version=version)
    return answer


@pytest.fixture
def change(document, ingest):
    return lambda before="25 days", after="27 days": ingest(
        document.collection, "leave.md", LEAVE.replace(before, after)
    )


def follow(client, answer, follow="yes"):
    return client.post(f"/answers/{answer.pk}/follow/", {"follow": follow})


def work():
    """Do what the scheduler and a worker do, and return the new mails."""
    before = len(mail.outbox)
    for _receiver, result in sweeping.send_robust(sender=None):
        assert not isinstance(result, Exception), result
    for notice in ChangeNotice.select_startable_jobs():
        send_notice(notice.pk)
    return mail.outbox[before:]


def test_a_change_is_told_once_with_the_words_of_then_and_now(answer, document, change, mine):
    follow(mine, answer)
    assert work() == []
    change("July", "August")
    assert work() == [], "another passage"
    change()
    [told] = work()
    assert told.to == ["owner@example.org"]
    for words in ("How many days?", QUOTE, "Employees have 27 days of leave a year."):
        assert words in told.body
    assert f"http://testserver/c/{answer.conversation_id}/#answer-{answer.pk}" in told.body
    assert f"http://testserver/documents/{document.pk}/?start=" in told.body
    assert work() == []
    change("left lapse in July", "left lapse in May")
    assert work() == [], "it says again what it said"
    change("25 days", "27 days")
    assert len(work()) == 1, "it has changed a second time"
    change("25 days", "28 days")
    assert len(work()) == 1
    document.delete()
    [told] = work()
    assert "This document has been removed." in told.body


def test_what_the_reader_saw_already_is_not_told(answer, change, mine):
    change()
    follow(mine, answer)
    assert work() == []


def test_who_ends_it_hears_no_more(answer, change, mine, owner):
    follow(mine, answer)
    page = mine.get("/accounts/").content.decode()
    assert "Answers that you follow" in page
    assert "How many days?" in page
    stranger = make_reader("stranger", "s@example.org")
    [followed] = FollowedAnswer.objects.all()
    client_of(stranger).post(f"/followed/{followed.pk}/end/")
    assert FollowedAnswer.objects.count() == 1
    mine.post(f"/followed/{followed.pk}/end/")
    assert FollowedAnswer.objects.count() == 0
    follow(mine, answer)
    follow(mine, answer)
    assert FollowedAnswer.objects.count() == 1
    follow(mine, answer, "no")
    change()
    assert work() == []


def test_the_button_is_there_for_readers_who_can_get_mail(answer, mine, owner, settings):
    def is_offered(client=mine):
        return "Follow this answer" in client.get(f"/c/{answer.conversation_id}/").content.decode()

    assert is_offered()
    assert 'aria-pressed="false"' in follow_button(mine, answer)
    swapped = mine.post(f"/answers/{answer.pk}/follow/", {"follow": "yes"}, headers={"HX-Request": "true"})
    assert 'aria-pressed="true"' in swapped.content.decode()
    assert "You get a mail when a passage changes." in swapped["HX-Trigger"]
    assert 'aria-pressed="true"' in follow_button(mine, answer)
    settings.MAIL_IS_SENT = False
    assert not is_offered()
    assert follow(mine, answer).status_code == 404
    settings.MAIL_IS_SENT = True
    User.objects.update(email="")
    assert not is_offered()
    assert follow(mine, answer).status_code == 404


def follow_button(client, answer):
    page = client.get(f"/c/{answer.conversation_id}/").content.decode()
    return page[page.index(f'id="answer-{answer.pk}-follow-button"') :][:200]


def test_nobody_follows_the_answers_of_others(answer):
    stranger = make_reader("stranger", "s@example.org")
    assert follow(client_of(stranger), answer).status_code == 404
    assert follow(Client(), answer).status_code == 404
    assert not FollowedAnswer.objects.exists()


def test_words_are_mailed_to_those_who_may_read_them_now(answer, document, change, mine):
    follow(mine, answer)
    change()
    create_change_notices()
    Collection.objects.filter(pk=document.collection_id).update(visibility="staff")
    assert work() == []
    assert ChangeNotice.objects.get().status == ChangeNotice.Status.DONE
    assert "No mail is sent while" in mine.get("/accounts/").content.decode()


def test_a_shared_answer_is_followed_by_its_reader(answer, conversation, document, change):
    reader = make_reader("reader", "reader@example.org")
    client, token = client_of(reader), sharing.share_conversation(conversation, Conversation.ShareScope.FOLLOWING)
    page = client.get(f"/s/{token}/").content.decode()
    at = page.index(f'action="/s/{token}/follow/')
    address = page[at:].split('"')[1]
    assert Client().post(address, {"follow": "yes"}).status_code == 404
    assert client.post(address, {"follow": "yes"})["Location"].startswith(f"/s/{token}/#answer-")
    assert str(answer.pk) not in client.get(f"/s/{token}/").content.decode()
    change()
    [told] = work()
    assert told.to == ["reader@example.org"]
    assert f"http://testserver/s/{token}/#answer-" in told.body
    assert str(answer.pk) not in told.body
    sharing.stop_sharing(conversation)
    change("25 days", "28 days")
    assert work() == []
    page = client.get("/accounts/").content.decode()
    assert "An answer that you may no longer read" in page
    assert "How many days?" not in page


def test_a_worker_that_dies_is_replaced_and_a_server_that_refuses_is_asked_again(answer, change, mine, monkeypatch):
    follow(mine, answer)
    change()
    create_change_notices()
    notice = ChangeNotice.objects.get()

    def refuse(_mail):
        raise ConnectionRefusedError("no server")

    with monkeypatch.context() as patch:
        patch.setattr(followed_upkeep.EmailMessage, "send", refuse)
        send_notice(notice.pk)
    notice.refresh_from_db()
    assert (notice.status, notice.error, notice.attempts) == ("waiting", "no server", 1)
    # The next worker is killed while it sends.
    lease = {"status": "running", "lease": uuid.uuid4(), "retry_at": None}
    ChangeNotice.objects.update(**lease, heartbeat_at=timezone.now())
    assert send_notice(notice.pk) is None
    ChangeNotice.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    sent = []
    monkeypatch.setattr("core.job_queue.send_job", lambda task, pk: sent.append((task, pk)))
    assert enqueue_forgotten_jobs(ChangeNotice) == 1
    assert sent == [("chat.tasks.send_change_notice", notice.pk)]
    assert send_notice(notice.pk).status == ChangeNotice.Status.DONE
    assert send_notice(notice.pk) is None
    assert len(mail.outbox) == 1
    assert mail.outbox[0].extra_headers["Message-ID"].startswith(f"<change-{notice.pk}-")
    assert work() == []
