"""The way of an answer: begun once, followed by many, saved whatever happens."""

import asyncio
import logging
import threading
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.answering import writers
from chat.models import Answer, Citation, Conversation, StreamedEvent
from chat.streaming import heartbeats, saving, streams, writing
from retrieval.models import Collection, Document
from tests.support.asking import begin, token

pytestmark = pytest.mark.django_db(transaction=True)


class SlowGenerator:
    """Writes a word every 50 ms or so, and counts how often it was asked."""

    name = "slow"
    may_refuse = True
    calls = 0
    pause_seconds = 0.05

    words = 10

    async def compose(self, *_given):
        type(self).calls += 1
        for number in range(self.words):
            await asyncio.sleep(self.pause_seconds)
            yield token(f"word{number} ")
        yield token("[1]")


@pytest.fixture
def slow(monkeypatch):
    generator = SlowGenerator()
    SlowGenerator.calls = 0
    monkeypatch.setattr(writers, "find_generator", lambda _name: generator)
    return generator


@pytest.fixture
def answer(library):
    """Return a question whose answer has not begun."""
    return begin()


async def collect(answer, after=""):
    return await alist(streams.follow_answer_stream(answer.pk, after))


async def alist(events):
    return [event async for event in events]


def text_of(events):
    return "".join(event.payload["text"] for event in events if event.name == "token")


def told(events):
    return [(event.event_id, event.name, event.payload) for event in events]


async def reread(answer):
    return await Answer.objects.select_related("conversation").aget(pk=answer.pk)


async def test_events_come_in_order_and_are_saved(answer):
    events = await collect(answer)
    names = [event.name for event in events]
    assert names[0] == "searched"
    assert set(names[1:-1]) == {"token"}
    assert names[-1] == "completed"
    assert [event.event_id for event in events] == [f"1-{n}" for n in range(1, len(events) + 1)]
    saved = await reread(answer)
    assert saved.status == Answer.Status.COMPLETED
    assert saved.text == text_of(events).strip() == events[-1].payload["answer"]
    assert "3450 grams" in saved.text
    assert saved.search_method == "zscore"
    assert saved.trace["assembly"]["blocks"] == 1
    citation = await Citation.objects.select_related("document__text").aget(answer=answer)
    text = (await sync_to_async(lambda: citation.document.text.text)()) if citation.document else ""
    assert (citation.quote, citation.support) == (text[citation.start : citation.end], 1.0)
    times = [saved.timings_ms[moment] for moment in ("searched", "first_token", "written", "total")]
    assert times == sorted(times)


async def test_a_reader_in_another_process_reads_from_the_database(answer, slow, monkeypatch):
    here = asyncio.create_task(collect(answer))
    await begun(answer)
    run = writing.RUNS.pop(answer.pk)  # as in another process
    assert told(await collect(answer)) == told(await here) == told(run.events)
    assert SlowGenerator.calls == 1


async def test_a_reader_who_comes_back_goes_on_where_the_line_was_lost(answer, slow):
    seen = []
    async for event in streams.follow_answer_stream(answer.pk):
        seen.append(event)
        if len(seen) == 4:
            break
    rest = await collect(answer, after=seen[-1].event_id)
    assert [event.event_id for event in seen + rest] == [f"1-{n}" for n in range(1, len(seen + rest) + 1)]
    assert text_of(seen + rest).split() == [f"word{n}" for n in range(10)] + ["[1]"]
    assert SlowGenerator.calls == 1


@pytest.mark.parametrize("is_here", [True, False], ids=["here", "in another process"])
async def test_the_stop_button_keeps_what_was_written(answer, slow, is_here):
    slow.words = 200
    events = []
    async for event in streams.follow_answer_stream(answer.pk):
        events.append(event)
        if len(events) == 4:
            await (streams.stop_answer if is_here else sync_to_async(Answer.objects.stop_answer))(answer.pk)
    assert events[-1].name == "completed"
    assert len(events) < 100
    assert events[-1].payload["notice"] == "Stopped before the end."
    assert (await reread(answer)).status == Answer.Status.STOPPED


async def test_what_a_killed_process_left_is_begun_again(answer, slow):
    assert (await sync_to_async(writing.acquire_run)(answer.pk)) is not None
    await StreamedEvent.objects.acreate(answer=answer, attempt=1, sequence=1, name="token", payload={"text": "lost "})
    await Answer.objects.aupdate(heartbeat_at=timezone.now() - timedelta(minutes=1))
    events = await collect(answer, after="1-1")
    assert events[0].name == "reset"
    assert events[1].event_id == "2-1"
    assert (await reread(answer)).status == Answer.Status.COMPLETED
    assert "lost" not in (await reread(answer)).text


async def begun(answer, events=0):
    """Return the run of an answer, once it is there and has published this number of events."""
    while answer.pk not in writing.RUNS or len(writing.RUNS[answer.pk].events) < events:
        await asyncio.sleep(0.01)
    return writing.RUNS[answer.pk]


async def left(answer):
    """Wait until the run of an answer is over. Its reader may get the end before the run has left."""
    async with asyncio.timeout(60):
        while answer.pk in writing.RUNS:
            await asyncio.sleep(0.01)


async def test_a_writer_that_lost_its_lease_saves_nothing_and_tells_what_was_saved(answer, slow):
    task = asyncio.create_task(collect(answer))
    await begun(answer)
    await Answer.objects.filter(pk=answer.pk).aupdate(lease=None, status=Answer.Status.COMPLETED, text="of another")
    events = await task
    assert (events[-1].name, events[-1].payload["answer"]) == ("completed", "of another")
    assert (await reread(answer)).text == "of another"


async def test_a_reader_of_a_writer_that_was_taken_over_reads_on_from_the_other(answer, slow, monkeypatch):
    monkeypatch.setattr(SlowGenerator, "pause_seconds", 0.15)
    here = asyncio.create_task(collect(answer))
    await begun(answer, events=3)
    taken = None
    while taken is None:
        # Its heartbeat may come in between.
        await Answer.objects.filter(pk=answer.pk).aupdate(heartbeat_at=timezone.now() - timedelta(minutes=1))
        taken = await sync_to_async(writing.acquire_run)(answer.pk)  # as another process does
    await left(answer)
    await StreamedEvent.objects.acreate(answer=answer, attempt=2, sequence=1, name="token", payload={"text": "There."})
    await Answer.objects.filter(pk=answer.pk).aupdate(status=Answer.Status.COMPLETED, lease=None, text="There.")
    async with asyncio.timeout(60):
        events = await here
    reset = [event.name for event in events].index("reset")
    assert [event.name for event in events[reset:]] == ["reset", "token", "completed"]
    assert {event.name for event in events[:reset]} == {"searched", "token"}
    assert events[-1].payload["answer"] == "There."


async def test_what_was_leased_is_written_though_the_reader_left_in_that_moment(answer, monkeypatch):
    whole = writing.acquire_run
    leasing, go_on = threading.Event(), threading.Event()

    def slowly(answer_id):
        leased = whole(answer_id)
        leasing.set()
        go_on.wait(5)
        return leased

    monkeypatch.setattr(writing, "acquire_run", slowly)
    reader = asyncio.create_task(collect(answer))
    await sync_to_async(leasing.wait, thread_sensitive=False)(5)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    monkeypatch.setattr(writing, "acquire_run", whole)
    go_on.set()
    async with asyncio.timeout(60):
        events = await collect(answer)
    assert events[-1].name == "completed"


@pytest.mark.parametrize("after", ["1-999", "1-" + "9" * 5000, "9" * 5000 + "-1", "١-١"])
async def test_an_id_that_was_never_given_out_keeps_nobody_waiting(answer, slow, after):
    here = asyncio.create_task(collect(answer))
    await begun(answer)
    async with asyncio.timeout(60):
        assert (await collect(answer, after))[-1].name == "completed"
    await here
    async with asyncio.timeout(60):
        assert (await collect(answer, after))[-1].name == "completed"


async def test_a_run_that_ends_does_not_take_another_one_with_it(answer, slow):
    here = asyncio.create_task(collect(answer))
    run = await begun(answer)
    other = writing.RUNS[answer.pk] = writing.WritingRun(run.answer, run.filters)
    other.loop = run.loop
    await here
    assert writing.RUNS.pop(answer.pk, None) is other


async def test_what_was_stopped_before_its_process_died_is_kept(answer):
    assert await sync_to_async(writing.acquire_run)(answer.pk) is not None
    for sequence, text in enumerate(["The pump ", "weighs "], start=1):
        await StreamedEvent.objects.acreate(
            answer=answer, attempt=1, sequence=sequence, name="token", payload={"text": text}
        )
    await streams.stop_answer(answer.pk)
    await sync_to_async(saving.close_interrupted_answers)()
    assert (await reread(answer)).text == ""
    await Answer.objects.filter(pk=answer.pk).aupdate(heartbeat_at=timezone.now() - timedelta(minutes=2))
    assert await sync_to_async(saving.close_interrupted_answers)() == 0
    saved = await reread(answer)
    assert (saved.status, saved.lease, saved.text) == (Answer.Status.STOPPED, None, "The pump weighs ")
    assert saved.notice == "Stopped before the end."
    assert saved.completed_at is not None


async def test_an_answer_deleted_while_it_is_written_ends_quietly(answer, slow, caplog, monkeypatch):
    # Events come as often as they can, to hit the moment in between.
    monkeypatch.setattr(heartbeats, "FLUSH_SECONDS", 0.001)
    monkeypatch.setattr(SlowGenerator, "pause_seconds", 0.001)
    slow.words = 3000
    here = asyncio.create_task(collect(answer))
    await begun(answer, events=2)
    there = asyncio.create_task(alist(streams._follow_stored_events(answer.pk, "")))
    with caplog.at_level(logging.INFO, "chat"):
        await Conversation.objects.filter(pk=answer.conversation_id).adelete()
        async with asyncio.timeout(60):
            endings = [(await reader)[-1] for reader in (here, there)]
    for ending in endings:
        assert (ending.name, ending.payload["message"]) == ("failed", "This conversation was deleted.")
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("INFO", None)]


async def test_interrupted_answers_are_closed(library):
    lost = await sync_to_async(begin)()
    old = await sync_to_async(begin)()
    fresh = await sync_to_async(begin)()
    await sync_to_async(writing.acquire_run)(lost.pk)
    long_ago = timezone.now() - timedelta(hours=1)
    await Answer.objects.filter(pk=lost.pk).aupdate(heartbeat_at=long_ago)
    await Answer.objects.filter(pk=old.pk).aupdate(created_at=long_ago)
    assert await sync_to_async(saving.close_interrupted_answers)() == 2
    assert (await reread(lost)).status == (await reread(old)).status == Answer.Status.FAILED
    assert (await reread(fresh)).status == Answer.Status.PENDING
    (event,) = await collect(lost)
    assert event.name == "failed"
    assert "ask again" in event.payload["message"]


async def test_an_unexpected_error_is_an_honest_sentence_and_so_is_a_site_without_documents(answer, monkeypatch):
    def explode(_name):
        raise ZeroDivisionError("internal detail")

    monkeypatch.setattr(writers, "find_generator", explode)
    event = (await collect(answer))[-1]
    assert event.name == "failed"
    assert event.payload["message"].startswith("Something went wrong")
    assert "internal detail" not in event.payload["message"]
    assert (await reread(answer)).status == Answer.Status.FAILED
    await Collection.objects.all().adelete()
    (event,) = await collect(await sync_to_async(begin)())
    assert "no documents" in event.payload["message"]


async def test_a_passage_deleted_while_the_answer_is_written_does_not_lose_it(answer, slow):
    async for event in streams.follow_answer_stream(answer.pk):
        if event.event_id == "1-3":
            await sync_to_async(Document.objects.all().delete)()
    assert event.name == "completed"
    assert (await reread(answer)).status == Answer.Status.COMPLETED
    citation = await Citation.objects.aget(answer=answer)
    assert citation.chunk_id is None
    assert citation.quote


@pytest.mark.parametrize("is_saved", [False, True], ids=["before it is saved", "after the commit"])
async def test_a_line_to_the_database_that_breaks_loses_no_answer_and_saves_it_once(answer, monkeypatch, is_saved):
    save, failures = saving.save_answer, [OperationalError("the line broke")]

    def unlucky(run):
        if failures and not is_saved:
            raise failures.pop()
        last = save(run)
        if failures:
            raise failures.pop()
        return last

    monkeypatch.setattr(saving, "save_answer", unlucky)
    assert (await collect(answer))[-1].name == "completed"
    assert (await reread(answer)).status == Answer.Status.COMPLETED
    assert await Citation.objects.filter(answer=answer).acount() == 1


async def test_an_answer_that_nobody_reads_is_stopped_though_nobody_closed_its_stream(answer, slow, monkeypatch):
    monkeypatch.setattr(heartbeats, "UNFOLLOWED_SECONDS", 0.3)
    slow.words = 200
    kept = streams.follow_answer_stream(answer.pk)
    while (await anext(kept)).name != "token":
        pass
    await left(answer)
    saved = await reread(answer)
    assert saved.status == Answer.Status.STOPPED
    assert saved.text.startswith("word0")
    # It was not closed, and gets the rest when it comes back.
    assert [event.name async for event in kept][-1] == "completed"


async def test_a_reader_who_waits_for_a_slow_model_is_there(answer, slow, monkeypatch):
    monkeypatch.setattr(heartbeats, "UNFOLLOWED_SECONDS", 0.1)
    monkeypatch.setattr(streams, "PING_SECONDS", 0.05)
    slow.words, slow.pause_seconds = 2, 0.4
    events = await collect(answer)
    assert [event.name for event in events].count("ping") > 3
    assert (await reread(answer)).status == Answer.Status.COMPLETED


@pytest.mark.parametrize("steps", range(4))
async def test_a_reader_who_leaves_as_a_word_comes_is_gone(answer, slow, monkeypatch, steps):
    monkeypatch.setattr(SlowGenerator, "pause_seconds", 30.0)
    reader = asyncio.create_task(collect(answer))
    run = await begun(answer, events=1)
    await asyncio.sleep(0.05)
    assert run.followers == 1
    run.publish_next_event("token", {"text": "word "})
    for _step in range(steps):
        await asyncio.sleep(0)
    reader.cancel()
    done, _running = await asyncio.wait([reader], timeout=5)
    assert reader in done, "The reader who left goes on reading."
    assert run.followers == 0
    await streams.stop_answer(answer.pk)
    await left(answer)


async def test_a_generation_stopped_before_its_first_step_leaves_nobody_waiting(answer, slow):
    run = await sync_to_async(writing.acquire_run)(answer.pk)
    writing.start_answer_writing(run)
    run.task.cancel()
    async with asyncio.timeout(60):
        events = await collect(answer)
    assert [event.name for event in events] == ["failed"]
    await left(answer)
    assert SlowGenerator.calls == 0


async def test_one_beat_serves_all_answers_and_what_cannot_be_stored_of_one_stops_no_other(library):
    async def begun_with(text):
        run = await sync_to_async(lambda: writing.acquire_run(begin().pk))()
        run.publish_next_event("token", {"text": text})
        return run

    snapshots = {await begun_with("word "): 1 for _ in range(5)}

    def counted():
        with CaptureQueriesContext(connection) as queries:
            assert len(heartbeats._store(snapshots)) == 5
        return len([query for query in queries if "SAVEPOINT" not in query["sql"]])

    # The statements are heartbeats, a check of rights, the events, and the transaction's two ends.
    assert await sync_to_async(counted)() <= 5
    assert await StreamedEvent.objects.acount() == 5
    assert [run.stored for run in snapshots] == [1] * 5
    mixed = {await begun_with("fine"): 1, await begun_with("nul \x00"): 1}
    assert set(await sync_to_async(heartbeats._store)(mixed)) == set(mixed)
    assert [run.stored for run in mixed] == [1, 0]
