"""Webhooks: what is announced, how it is signed and sent, and that no process's end loses it."""

import base64
import hashlib
import hmac
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from chat.models import Answer, ApprovedAnswer, Conversation, Feedback
from core import job_queue
from core.job_queue import enqueue_forgotten_jobs, run_job_maintenance
from retrieval import webhooks
from retrieval.models import Document, Webhook, WebhookDelivery
from retrieval.models.webhook import announce_event
from tests.support.people import make_superuser
from tests.support.serving import QuietHandler, serving
from tests.support.site import SiteProcess, free_port, wait_until

pytestmark = pytest.mark.django_db

EVENT = Webhook.Event.DOCUMENT_FAILED
QUESTION = "What is the boiling point of tungsten hexafluoride?"


class Receiver:
    """A program that receives events: ``requests`` has the received ones, with their bodies."""

    def __init__(self):
        self.status, self.location, self.url = 204, "", ""
        self.requests = []
        self.may_answer = threading.Event()
        self.may_answer.set()


@pytest.fixture
def receiver(settings):
    settings.SOURCE_PRIVATE_HOSTS = ["127.0.0.1"]
    state = Receiver()

    class Handler(QuietHandler):
        def do_POST(self):
            state.requests.append(({name.lower(): value for name, value in self.headers.items()}, self.read_body()))
            state.may_answer.wait(60)
            self.send(status=state.status, **({"Location": state.location} if state.location else {}))

    with serving(Handler) as url:
        state.url = f"{url}/events"
        yield state
        state.may_answer.set()


def add(address, *events, secret=""):
    webhook = Webhook(address=address, events=list(events or Webhook.Event))
    webhook.set_secret(secret or webhooks.new_secret())
    webhook.save()
    return webhook


def announced():
    return [(row.event, row.payload) for row in WebhookDelivery.objects.order_by("pk")]


def delivered(webhook):
    """One event, after one attempt to send it."""
    announce_event(EVENT, {"document": 7})
    row = webhook.deliveries.get()
    webhooks.send_delivery(row.pk)
    row.refresh_from_db()
    return row


def test_only_active_webhooks_are_told_and_only_what_they_name():
    wanted = add("https://a.example/", EVENT)
    add("https://b.example/", Webhook.Event.GAP_FOUND)
    Webhook.objects.filter(pk=add("https://c.example/", EVENT).pk).update(is_active=False)
    assert announce_event(EVENT, {"document": 7}) == 1
    assert WebhookDelivery.objects.get().webhook == wanted


def test_what_is_undone_is_not_announced():
    add("https://a.example/")
    with transaction.atomic():
        assert announce_event(EVENT, {"document": 7}) == 1
        transaction.set_rollback(True)
    assert announced() == []


def test_a_document_that_cannot_be_read(collection, ingest):
    add("https://a.example/")
    document = ingest(collection, "broken.pdf", b"%PDF-1.7 broken")
    [(event, payload)] = announced()
    assert (event, document.status) == ("document.failed", Document.Status.FAILED)
    assert payload == {
        "document": document.pk, "source": "broken.pdf", "collection": "library", "error": document.error
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_question_that_is_not_answered_and_a_dislike(collection, ingest, client):
    ingest(collection, "pump.md", "# Pump\n\nThe pump weighs 3450 grams.")
    add("https://a.example/")
    ask = {"question": "How heavy is the pump?"}
    answered = client.post("/api/v1/ask/", ask, content_type="application/json").json()
    refused = client.post("/api/v1/ask/", {"question": QUESTION}, content_type="application/json").json()
    assert (answered["refused"], refused["refused"]) == (False, True)
    gap = {"answer": refused["answer_id"], "question": QUESTION, "collection": None}
    assert announced() == [("question.unanswered", gap)]
    for helpful in (True, False):
        rated = {"helpful": helpful, **({} if helpful else {"reason": "wrong", "comment": "It is 3.5 kg."})}
        url = f"/api/v1/answers/{answered['answer_id']}/feedback/"
        assert client.post(url, rated, content_type="application/json").status_code < 300
    said = {"answer": answered["answer_id"], "question": ask["question"], "reason": "wrong", "comment": "It is 3.5 kg."}
    assert announced()[1:] == [("answer.disliked", said)]


def test_an_approved_answer_that_is_flagged(collection):
    add("https://a.example/", Webhook.Event.APPROVED_FLAGGED)
    approved = ApprovedAnswer.objects.create(question="How heavy?", text="3450 grams [1].", collection=collection)
    conversation = Conversation.objects.create(title="How heavy?")
    answer = Answer.objects.create(conversation=conversation, question="How heavy?", approved=approved)
    for _ in range(2):
        Feedback.objects.update_or_create(answer=answer, defaults={"helpful": False})
    about = {"approved_answer": approved.pk, "question": "How heavy?", "collection": "library", "flag": "unhelpful"}
    assert announced() == [("approved_answer.flagged", about)]


@pytest.mark.parametrize("secret", ["", "a secret of somebody's own", "whsec_not base64"])
def test_what_is_sent_is_signed(receiver, secret):
    secret = secret or webhooks.new_secret()
    webhook = add(receiver.url, secret=secret)
    assert secret not in webhook.secret
    row = delivered(webhook)
    assert (row.status, row.response_status, row.attempts) == ("done", 204, 1)
    [(headers, body)] = receiver.requests
    assert json.loads(body) == {
        "type": "document.failed", "timestamp": row.created_at.isoformat(), "data": {"document": 7}
    }  # fmt: skip
    # standardwebhooks.com defines this for a receiver that has the secret.
    is_form = secret.startswith("whsec_") and " " not in secret
    key = base64.b64decode(secret.removeprefix("whsec_")) if is_form else secret.encode()
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_is_not_taken_is_sent_again_later_and_at_last_given_up(receiver, status):
    receiver.status, receiver.location = status, receiver.url if status == 302 else ""
    row = delivered(add(receiver.url))
    assert (row.status, row.response_status, row.attempts) == ("waiting", status, 1)
    assert row.error == f"The address answered {status}."
    assert row.retry_at > timezone.now() + timedelta(seconds=5)
    assert len(receiver.requests) == 1
    pauses = []
    while row.status == "waiting":
        WebhookDelivery.objects.update(retry_at=None)
        webhooks.send_delivery(row.pk)
        row.refresh_from_db()
        pauses += [row.retry_at - timezone.now()] if row.retry_at else []
    assert pauses == sorted(pauses)
    assert (row.status, row.attempts, len(receiver.requests)) == ("failed", 8, 8)
    assert len({headers["webhook-id"] for headers, _body in receiver.requests}) == 1


@pytest.fixture
def sent(monkeypatch):
    """Return the deliveries whose tasks were sent."""
    tasks = []
    monkeypatch.setattr(job_queue, "send_job", lambda task, pk: tasks.append(pk))
    return tasks


def announced_to(webhook, number):
    for each in range(number):
        announce_event(EVENT, {"document": each})
    return list(webhook.deliveries.order_by("pk").values_list("pk", flat=True))[-number:]


@pytest.mark.django_db(transaction=True)
def test_a_receiver_gets_one_at_a_time_and_a_hanging_one_keeps_no_other_waiting(receiver, sent):
    receiver.may_answer.clear()
    hanging = add(receiver.url)
    first, second, third = announced_to(hanging, 3)
    with serving(QuietHandler) as url:
        other = add(url)
        (apart,) = announced_to(other, 1)
        (fourth,) = WebhookDelivery.objects.filter(webhook=hanging, pk__gt=third).values_list("pk", flat=True)
        with ThreadPoolExecutor(1) as elsewhere:
            delivery = elsewhere.submit(in_thread, webhooks.send_delivery, first)
            wait_until(lambda: receiver.requests, what="the first request")
            assert webhooks.send_delivery(second) is None
            assert webhooks.send_delivery(apart).attempts == 1
            sent.clear()
            WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(minutes=1))
            WebhookDelivery.objects.filter(webhook=hanging).update(enqueued_at=None)
            assert enqueue_forgotten_jobs(WebhookDelivery) == 0, "its turn comes when the first has ended"
            receiver.may_answer.set()
            assert delivery.result(60).status == "done"
    assert sent == [second]
    sent.clear()
    for each, following in ((second, [third]), (third, [fourth]), (fourth, [])):
        assert webhooks.send_delivery(each).status == "done"
        assert sent == following
        sent.clear()
    assert len(receiver.requests) == 4


def in_thread(function, argument):
    try:
        return function(argument)
    finally:
        connection.close()


@pytest.mark.parametrize("failing", [500, 404, 0])
@pytest.mark.django_db(transaction=True)
def test_a_receiver_that_fails_repeatedly_is_left_alone_for_a_while(receiver, sent, client, failing):
    receiver.status = failing or 204
    webhook = add(receiver.url if failing else f"http://127.0.0.1:{free_port()}/")
    waiting = announced_to(webhook, 6)
    for each in waiting[:3]:
        assert webhook.paused_until is None
        webhooks.send_delivery(each)
        webhook.refresh_from_db()
    assert webhook.failures == 3
    assert timedelta(seconds=60) < webhook.paused_until - timezone.now() < timedelta(minutes=2)
    sent.clear()
    tried = len(receiver.requests)
    waiting += announced_to(webhook, 1)
    assert [webhooks.send_delivery(each) for each in waiting] == [None] * 7
    WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    assert (enqueue_forgotten_jobs(WebhookDelivery), sent, len(receiver.requests)) == (0, [], tried)
    client.force_login(make_superuser("boss"))
    assert "paused until" in client.get("/admin/retrieval/webhook/").text.lower()
    # The pause ends: one is tried, and the next pause is longer.
    WebhookDelivery.objects.update(retry_at=timezone.now())
    Webhook.objects.update(paused_until=timezone.now())
    assert (enqueue_forgotten_jobs(WebhookDelivery), sent) == (1, waiting[:1])
    webhooks.send_delivery(waiting[0])
    webhook.refresh_from_db()
    assert webhook.paused_until > timezone.now() + timedelta(minutes=3)
    # A test is sent all the same, and its success ends the pause.
    receiver.status = 204
    Webhook.objects.update(address=receiver.url)
    sent.clear()
    client.post("/admin/retrieval/webhook/", {"action": "send_test", "_selected_action": [webhook.pk]})
    assert webhooks.send_delivery(sent.pop()).status == "done"
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.paused_until) == (0, None)
    assert sent == waiting[:1]


def test_what_could_not_be_sent_for_days_is_given_up():
    webhook = add("https://a.example/")
    old, new = announced_to(webhook, 2)
    WebhookDelivery.objects.filter(pk=old).update(created_at=timezone.now() - timedelta(days=4))
    run_job_maintenance()
    states = {row.pk: (row.status, row.error) for row in webhook.deliveries.all()}
    assert states == {old: ("failed", "It could not be sent within 3 days."), new: ("waiting", "")}


def test_nothing_is_sent_inside_the_sites_own_network(receiver, settings):
    settings.SOURCE_PRIVATE_HOSTS = []
    row = delivered(add(receiver.url))
    assert (row.status, row.attempts, receiver.requests) == ("failed", 1, [])
    assert "SOURCE_PRIVATE_HOSTS" in row.error


def test_a_machine_that_is_away_is_asked_again(receiver):
    row = delivered(add(f"http://127.0.0.1:{free_port()}/"))
    assert row.status == "waiting"
    assert "cannot be reached" in row.error


@pytest.mark.django_db(transaction=True)
def test_a_delivery_whose_process_was_killed_is_sent_by_another(receiver, tmp_path):
    receiver.may_answer.clear()
    webhook = add(receiver.url)
    announce_event(EVENT, {"document": 7})
    row = webhook.deliveries.get()
    code = f"from retrieval.webhooks import send_delivery; send_delivery({row.pk})"
    process = SiteProcess(["django", "shell", "-c", code], tmp_path / "log", SOURCE_PRIVATE_HOSTS="127.0.0.1")
    wait_until(lambda: receiver.requests, 60, "the first request")
    process.kill()
    receiver.may_answer.set()
    assert webhooks.send_delivery(row.pk) is None
    # The worker is taken for dead when it was silent for long.
    WebhookDelivery.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert enqueue_forgotten_jobs(WebhookDelivery) == 1
    webhooks.send_delivery(row.pk)
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("done", 2)
    first, second = (headers["webhook-id"] for headers, _body in receiver.requests)
    assert first == second


def test_the_log_is_kept_for_a_week(receiver):
    row = delivered(add(receiver.url))
    run_job_maintenance()
    assert WebhookDelivery.objects.filter(pk=row.pk).exists()
    WebhookDelivery.objects.update(finished_at=timezone.now() - timedelta(days=8))
    run_job_maintenance()
    assert not WebhookDelivery.objects.filter(pk=row.pk).exists()


def test_an_admin_adds_one_and_sends_a_test(receiver, client):
    client.force_login(make_superuser("boss"))
    form = {"address": receiver.url, "events": ["document.failed", "answer.disliked"], "is_active": "on"}
    page = client.post("/admin/retrieval/webhook/add/", {**form, "new_secret": ""}, follow=True).content.decode()
    webhook = Webhook.objects.get()
    assert webhook.events == form["events"]
    secret = webhooks.decrypt(webhook.SECRET_PURPOSE, webhook.secret)
    assert secret in page
    change = f"/admin/retrieval/webhook/{webhook.pk}/change/"
    client.post(change, {**form, "events": ["document.failed"], "new_secret": ""})
    changed = Webhook.objects.get()
    assert (changed.events, changed.secret) == (["document.failed"], webhook.secret)
    assert secret not in client.get(change).content.decode()
    chosen = {"action": "send_test", "_selected_action": [webhook.pk]}
    assert client.post("/admin/retrieval/webhook/", chosen).status_code == 302
    row = WebhookDelivery.objects.get()
    webhooks.send_delivery(row.pk)
    assert json.loads(receiver.requests[0][1])["type"] == "test"
    assert "delivered" in client.get("/admin/retrieval/webhookdelivery/").content.decode()
    chosen = {"action": "send_again", "_selected_action": [row.pk]}
    assert client.post("/admin/retrieval/webhookdelivery/", chosen).status_code == 302
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("waiting", 0)


@pytest.mark.parametrize("address", ["ftp://a.example/", "http://127.0.0.2/", "https://a:b@c/"])
def test_an_address_that_nothing_could_be_sent_to_is_not_saved(receiver, client, address):
    client.force_login(make_superuser("boss"))
    form = {"address": address, "events": ["document.failed"], "is_active": "on", "new_secret": ""}
    assert client.post("/admin/retrieval/webhook/add/", form).context["errors"]
    assert not Webhook.objects.exists()
