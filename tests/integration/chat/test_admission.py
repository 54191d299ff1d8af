"""Answers that wait in the queues of a process and of all processes; and the deadline of a question."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.test import Client

from chat.answering import pipeline
from chat.models import Answer
from chat.streaming import asking, streams
from chat.streaming.admission import ADMISSION
from core.api.callers import find_network
from tests.support.asking import QUESTION, begin
from tests.support.faults import counted

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_is_kept(settings):
    cache.clear()
    settings.ANSWER_CACHE_SECONDS = 0


class Reader:
    """Somebody who follows a new answer; ``heard`` are its events so far."""

    def __init__(self, answer, *, caller=""):
        self.answer = answer
        self.caller = caller
        self.heard = []
        self.task = asyncio.create_task(self._read())

    async def _read(self):
        async for event in streams.follow_answer_stream(self.answer.pk, caller=self.caller):
            self.heard.append(event)

    @property
    def places(self):
        return [event.payload["place"] for event in self.heard if event.name == "queued"]

    async def hears(self, name):
        async with asyncio.timeout(20):
            while True:
                for event in self.heard:
                    if event.name == name:
                        return event
                await asyncio.sleep(0.01)

    async def status(self):
        return (await Answer.objects.aget(pk=self.answer.pk)).status


async def reader(question=QUESTION):
    return Reader(await sync_to_async(begin)(question))


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_answers_wait_for_their_turn_and_are_told_their_place(library, gated, settings):
    settings.ANSWERS_AT_ONCE = 1
    first = await reader()
    await first.hears("token")
    second = await reader()
    await second.hears("queued")
    third = await reader()
    await until(lambda: second.places == [1] and third.places == [2])
    assert (await second.status(), await third.status()) == (Answer.Status.PENDING, Answer.Status.PENDING)
    assert ADMISSION.count_writing_and_waiting_answers() == (1, 2)
    # A caller who comes back keeps the place.
    second.task.cancel()
    again = Reader(second.answer)
    await until(lambda: again.places == [1])
    assert third.places == [2]
    await streams.stop_answer(second.answer.pk)
    await until(lambda: third.places == [2, 1])
    gated.gate.set()
    await third.hears("completed")
    assert third.places == [2, 1, 0]
    assert [event.name for event in third.heard][:4] == ["queued", "queued", "queued", "searched"]
    assert await second.status() == Answer.Status.STOPPED
    await until(lambda: ADMISSION.count_writing_and_waiting_answers() == (0, 0))
    assert first.places == []
    assert gated.asked == 2


async def test_an_answer_that_serves_again_does_not_wait(library, gated, settings):
    settings.ANSWER_CACHE_SECONDS = 600.0
    gated.gate.set()
    await (await reader("What does the MX-9920-W weigh?")).hears("completed")
    gated.gate.clear()
    settings.ANSWERS_AT_ONCE = 1
    first = await reader()
    await first.hears("token")
    again = await reader("What does the MX-9920-W weigh?")
    assert (await again.hears("completed")).payload["repeats"]
    assert again.places == []
    gated.gate.set()
    await first.hears("completed")


def test_an_address_that_floods_the_site_is_refused_and_another_is_answered(library, settings):
    """One caller has a quarter of 4 + 4 places; an IPv6 network is one caller."""
    settings.ANSWERS_AT_ONCE, settings.ANSWERS_WAITING = 4, 4
    for number in range(2):
        asking.create_answer(QUESTION, user=AnonymousUser(), visitor="", caller=find_network(f"2001:db8:1:2::{number}"))
    body = {"question": QUESTION}
    refused = Client(REMOTE_ADDR="2001:db8:1:2::3").post("/api/v1/ask/", body, content_type="application/json")
    assert (refused.status_code, int(refused["Retry-After"]) >= 1) == (429, True)
    assert refused.json()["detail"].startswith("Your earlier questions are still being answered.")
    page = Client(REMOTE_ADDR="2001:db8:1:2::3").post("/ask/", body)
    assert (page.status_code, int(page["Retry-After"]) >= 1) == (429, True)
    asked = {"messages": [{"role": "user", "content": QUESTION}]}
    completion = Client(REMOTE_ADDR="2001:db8:1:2::3").post("/v1/chat/completions", asked, "application/json")
    assert completion.json()["error"]["code"] == "rate_limit_exceeded"
    answered = Client(REMOTE_ADDR="2001:db8:1:3::3").post("/api/v1/ask/", body, content_type="application/json")
    assert answered.status_code == 200


async def test_answers_of_one_caller_are_not_written_in_all_places(library, gated, settings):
    settings.ANSWERS_AT_ONCE = 4
    settings.ANSWERS_WAITING = 8
    flood = [Reader(await sync_to_async(begin)(caller="flood"), caller="flood") for _ in range(3)]
    # Also one who comes after the reservation is over.
    ADMISSION._reserved.clear()
    await until(lambda: sum(bool(each.places) for each in flood) == 2)
    other = Reader(await sync_to_async(begin)(caller="other"))
    await other.hears("token")
    assert ADMISSION.count_writing_and_waiting_answers() == (2, 2)
    gated.gate.set()
    for each in (*flood, other):
        await each.hears("completed")


def test_the_page_keeps_the_question_and_says_when_to_come_again(library, settings):
    settings.ANSWERS_AT_ONCE, settings.ANSWERS_WAITING = 1, 0
    begin()
    for headers in ({}, {"HX-Request": "true"}):
        response = Client().post("/ask/", {"question": QUESTION}, headers=headers)
        assert (response.status_code, int(response["Retry-After"]) >= 1) == (503, True)
        assert "Too many questions are being answered." in response.content.decode()
        assert headers or QUESTION in response.content.decode()


async def test_waiting_ends_with_the_deadline(library, gated, settings):
    settings.ANSWERS_AT_ONCE = 1
    first = await reader()
    await first.hears("token")
    settings.QUESTION_SECONDS = 0.5
    out_of_time = counted("ragsite_answers_out_of_time_total", stage="waiting")
    second = await reader()
    failed = await second.hears("failed")
    assert failed.payload["message"].startswith("The site did not manage to answer in time.")
    assert counted("ragsite_answers_out_of_time_total", stage="waiting") == out_of_time + 1
    assert await second.status() == Answer.Status.FAILED
    assert ADMISSION.count_writing_and_waiting_answers() == (1, 0)
    gated.gate.set()
    await first.hears("completed")


async def test_a_search_that_hangs_ends_with_the_deadline(library, settings, monkeypatch):
    settings.QUESTION_SECONDS = 0.5
    released = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "find_sources", lambda *_: released.wait(30))
        failed = await (await reader()).hears("failed")
    released.set()
    assert failed.payload["message"].startswith("The site did not manage to answer in time.")
    settings.QUESTION_SECONDS = 60.0
    assert "3450 grams" in (await (await reader()).hears("completed")).payload["answer"]


async def test_what_a_hung_writer_has_written_is_kept_and_marked(library, gated, settings):
    settings.QUESTION_SECONDS = 1.5
    completed = await (await reader()).hears("completed")
    assert completed.payload["answer"] == "It weighs "
    assert completed.payload["notice"] == "The time for this answer was over before its end."
