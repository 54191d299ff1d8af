"""Workers as the Procfile starts them: a task that hangs in one queue delays no task of another."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from core.job_queue import enqueue
from evaluation.models import Judgement
from ragsite.celery import app
from ragsite.processes.supervision import parse_procfile
from retrieval.documents import submission
from retrieval.models import Document, Webhook, WebhookDelivery
from retrieval.models.webhook import announce_event
from retrieval.webhooks import new_secret
from tests.support.judged_answers import completed_answer
from tests.support.serving import QuietHandler, serving
from tests.support.site import SiteProcess, wait_until

EVENT = Webhook.Event.DOCUMENT_FAILED
HANDLED = {
    "documents": ["ingest_document", "resume_draft", "sync_source"],
    "deliveries": ["deliver_webhook", "send_change_notice"],
    "judgements": ["judge_answer", "measure_evaluation_run", "try_model"],
    "maintenance": [
        "sweep", "reconcile", "request_due_sources", "request_forgotten", "forget_deleted_documents", "delete_old",
        "try_embedder",
    ],
}  # fmt: skip


def test_every_task_has_a_queue_and_what_the_schedule_sends_expires():
    app.loader.import_default_modules()
    found = {}
    for name in app.tasks:
        if not name.startswith("celery."):
            queue = app.amqp.router.route({}, name)["queue"].name
            found.setdefault(queue, []).append(name.rpartition(".")[2])
    assert {queue: sorted(tasks) for queue, tasks in found.items()} == {
        queue: sorted(tasks) for queue, tasks in HANDLED.items()
    }
    assert set(HANDLED) == set(settings.QUEUES)
    # The clocks of machines differ by minutes: a worker whose clock is ahead must not drop every task.
    expiries = [entry["options"]["expires"] for entry in settings.CELERY_BEAT_SCHEDULE.values()]
    assert all(300 <= seconds <= 3600 for seconds in expiries)
    assert all(entry["task"] in app.tasks for entry in settings.CELERY_BEAT_SCHEDULE.values())


@contextmanager
def workers(folder, *names, **environment):
    """Start the workers of these names in the Procfile; without names, one without options for queues."""
    processes = parse_procfile((settings.BASE_DIR / "Procfile").read_text(), {"HOST": "h", "PORT": "1"})
    commands = {process.name: process.command[2:] for process in processes}
    plain = commands["judgements"][: commands["judgements"].index("--queues")]
    chosen = {name: commands[name] for name in names} or {"worker": [*plain, "--concurrency", "2"]}
    started = [SiteProcess(command, folder / f"{name}.log", **environment) for name, command in chosen.items()]
    try:
        yield
    finally:
        for process in started:
            process.stop()


def add_webhook(url):
    webhook = Webhook(address=f"{url}/", events=[EVENT])
    webhook.set_secret(new_secret())
    webhook.save()
    return webhook


def judgements(number, judge):
    made = [Judgement.objects.create(answer=completed_answer(), judge=judge) for _ in range(number)]
    enqueue(Judgement, [each.pk for each in made])


def is_ready(document):
    return Document.objects.get(pk=document.pk).status == Document.Status.READY


@pytest.mark.worker
@pytest.mark.django_db(transaction=True)
def test_an_upload_is_read_while_judges_and_receivers_hang(collection, queue, judge, tmp_path):
    judge.is_open.clear()
    asked = []

    class Hanging(QuietHandler):
        def do_POST(self):
            asked.append(self.read_body())
            judge.is_open.wait(60)
            self.send(status=204)

    environment = {"JUDGE_BASE_URL": judge.url, "JUDGE_MODEL": "tiny-judge", "SOURCE_PRIVATE_HOSTS": "127.0.0.1"}
    with serving(Hanging) as url, workers(tmp_path, "documents", "worker", "judgements", **environment):
        add_webhook(url)
        for each in range(10):
            announce_event(EVENT, {"document": each})
        judgements(10, "model")
        wait_until(lambda: judge.requests and asked, 60, "the judge and the receiver")
        document = submission.submit(collection, "pump.md", b"# Pump\n\nIt weighs 3450 grams.").document
        wait_until(lambda: is_ready(document), 60, "the upload")
        # Maintenance continues beside the receiver.
        lost = submission.submit(collection, "valve.md", b"# Valve\n\nIt closes at 6 bar.").document
        Document.objects.filter(pk=lost.pk, status="pending").update(
            enqueued_at=None, created_at=timezone.now() - timedelta(minutes=1)
        )
        app.send_task("retrieval.tasks.sweep")
        wait_until(lambda: is_ready(lost), 60, "what the sweep found")
        assert (len(asked), len(judge.requests)) == (1, 1), "they hang still"
        assert Judgement.objects.filter(status="running").count() == 1
        judge.is_open.set()
        wait_until(lambda: not WebhookDelivery.objects.exclude(status="done").exists(), 60, "the deliveries")
        wait_until(lambda: not Judgement.objects.exclude(status="done").exists(), 90, "the judgements")
        assert len(asked) == 10


@pytest.mark.worker
@pytest.mark.django_db(transaction=True)
def test_a_worker_without_queues_takes_from_all_of_them(collection, queue, settings, tmp_path):
    class Receiver(QuietHandler):
        def do_POST(self):
            self.read_body()
            self.send(status=204)

    Document.objects.create(collection=collection, source="lost.md", status="processing", lease="0" * 32)
    Document.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    with serving(Receiver) as url, workers(tmp_path, SOURCE_PRIVATE_HOSTS="127.0.0.1"):
        add_webhook(url)
        announce_event(EVENT, {"document": 7})
        judgements(1, "offline")
        read = submission.submit(collection, "pump.md", b"# Pump\n\nIt weighs 3450 grams.").document
        # Older code sends the task in this form.
        old = Document.objects.create(collection=collection, source="old.md", status="pending")
        app.send_task("retrieval.tasks.ingest_document", (old.pk,), queue="celery")
        app.send_task("retrieval.tasks.sweep")
        wait_until(lambda: is_ready(read), 90, "the upload")
        wait_until(lambda: WebhookDelivery.objects.get().status == "done", 60, "the delivery")
        wait_until(lambda: Judgement.objects.get().status == "done", 60, "the judgement")
        wait_until(lambda: Document.objects.get(pk=old.pk).attempts, 60, "what older code sent")
        wait_until(lambda: not Document.objects.filter(lease="0" * 32).exists(), 60, "the sweep")
