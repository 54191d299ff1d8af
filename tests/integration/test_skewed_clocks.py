"""Machines whose clocks differ work on the same rows: leases are compared by the database's clock alone."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from chat.models import Answer, Conversation
from chat.streaming import heartbeats, saving, streams, writing
from core import job_queue
from core.job_queue import enqueue_forgotten_jobs as sweep_jobs
from core.jobs import Job, acquire_lease
from evaluation import judgements as judging
from evaluation.models import EvaluationRun, EvaluationSet, Judgement
from evaluation.runs import run_execution as measuring
from retrieval.documents import reading_turns
from retrieval.models import Document, Draft, Source, SourceRun
from retrieval.sources import sync_runs as source_runs

pytestmark = pytest.mark.django_db(transaction=True)

# Longer than any process may be silent. How long ago a row was made is known by the clock of who made it.
SKEW = timedelta(minutes=4)


@pytest.fixture
def clock(monkeypatch):
    """``clock(skew)``: from now on, this machine's clock is wrong by so much."""
    right = timezone.now

    def set_wrong(skew):
        monkeypatch.setattr(timezone, "now", lambda: right() + skew)

    return set_wrong


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    """Return the ids of the tasks that were sent to workers."""
    found = []
    monkeypatch.setattr(job_queue, "send_job", lambda task, pk: found.append(pk))
    return found


def answer():
    return Answer.objects.create(conversation=Conversation.objects.create(), question="How heavy?")


def made(kind, collection):
    if kind is Answer:
        return answer()
    if kind is Judgement:
        return Judgement.objects.create(answer=answer(), judge=Judgement.Judge.OFFLINE)
    if kind is EvaluationRun:
        return EvaluationRun.objects.create(
            settings={}, evaluation_set=EvaluationSet.objects.create(name="S", collection=collection)
        )
    if kind is SourceRun:
        return SourceRun.objects.create(source=Source.objects.create(name="S", kind="folder", collection=collection))
    if kind is Draft:
        return Draft.objects.create(collection=collection)
    return Document.objects.create(collection=collection, source="a.md", content_hash="x")


@pytest.mark.parametrize("skew", [SKEW, -SKEW], ids=["ahead", "behind"])
@pytest.mark.parametrize("kind", [Answer, Document, Draft, EvaluationRun, Judgement, SourceRun])
def test_what_is_alive_is_taken_over_by_nobody_and_what_is_silent_by_anybody(kind, skew, collection, clock):
    row = made(kind, collection)
    # These are the jobs that a worker has begun.
    begun = {} if kind in (Answer, Draft) else {"status": kind.RUNNING}
    clock(skew)
    held = acquire_lease(kind.objects.all(), row.pk, **begun)
    assert held.filter_by_lease().update(heartbeat_at=Now()) == 1
    clock(timedelta())
    assert acquire_lease(kind.objects.all(), row.pk) is None
    clock(-skew)
    assert acquire_lease(kind.objects.all(), row.pk) is None
    if issubclass(kind, Job):
        sweep_jobs(kind)
    else:
        saving.close_interrupted_answers()
    assert held.filter_by_lease().exists()
    # Silent by the database's clock.
    kind.objects.update(heartbeat_at=Now() - 2 * kind.SILENT_AFTER)
    assert acquire_lease(kind.objects.all(), row.pk) is not None


@pytest.mark.parametrize("skew", [SKEW, -SKEW], ids=["ahead", "behind"])
def test_a_postponed_job_is_begun_after_its_pause(skew, collection, clock, sent):
    document = made(Document, collection)
    clock(skew)
    acquire_lease(Document.unfinished(), document.pk).postpone("away")
    clock(-skew)
    assert sweep_jobs(Document) == 0
    Document.objects.update(retry_at=Now())
    assert sweep_jobs(Document) == 1
    assert sent == [document.pk]
    # It was just sent, whatever the next machine's clock says.
    clock(skew)
    assert sweep_jobs(Document) == 0


@pytest.mark.parametrize("skew", [SKEW, -SKEW], ids=["ahead", "behind"])
def test_judgements_and_runs_wait_for_their_pause(skew, collection, clock):
    for kind, begin in ((Judgement, judging.judge_answer), (EvaluationRun, measuring.measure_run)):
        row = made(kind, collection)
        clock(skew)
        acquire_lease(kind.unfinished(), row.pk, status=kind.RUNNING).postpone("away")
        clock(-skew)
        assert begin(row.pk) is None


@pytest.mark.parametrize("skew", [SKEW, -SKEW], ids=["ahead", "behind"])
def test_an_answer_is_followed_and_not_written_twice(skew, clock, settings):
    clock(skew)
    first = answer()
    run = writing.acquire_run(first.pk)
    assert run is not None
    assert Answer.objects.filter(pk=first.pk).update(status=Answer.Status.GENERATING)
    clock(-skew)
    _, is_alive, _ = streams._load_events_after(first.pk, 0, 0)
    assert is_alive
    assert saving.close_interrupted_answers() == 0
    # The writer, on the first machine, sees that somebody follows on the second.
    clock(skew)
    assert heartbeats._store({run: 0}) == {run: True}
    Answer.objects.update(followed_at=Now() - 2 * timedelta(seconds=heartbeats.UNFOLLOWED_SECONDS))
    clock(-skew)
    assert heartbeats._store({run: 0}) == {run: False}


@pytest.mark.parametrize("skew", [SKEW, -SKEW], ids=["ahead", "behind"])
def test_turns_of_slow_documents_and_of_sources_are_counted(skew, collection, clock, settings):
    settings.SLOW_DOCUMENTS_AT_ONCE = 1
    first = made(Document, collection)
    second = Document.objects.create(collection=collection, source="b.md", content_hash="x")
    run = made(SourceRun, collection)
    other = SourceRun.objects.create(source=Source.objects.create(name="T", kind="folder", collection=collection))
    clock(skew)
    assert acquire_lease(Document.unfinished(), first.pk, status=Document.RUNNING, is_slow=True)
    assert acquire_lease(SourceRun.unfinished(), run.pk, status=SourceRun.RUNNING)
    clock(-skew)
    held = acquire_lease(Document.unfinished(), second.pk, status=Document.RUNNING)
    assert held is not None
    assert not reading_turns._take_reading_turn(held)
    assert source_runs._lease_if_slot_free(other.pk) is None
