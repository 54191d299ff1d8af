"""The page's own requests. Browser tests cover the visible page."""

import re

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import cache
from django.test import AsyncClient, Client

from chat.budgets import QuestionThrottle
from chat.models import Answer, Conversation
from retrieval.models import Collection
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HTTP_HX_REQUEST": "true"}


def test_questions_from_one_place_are_limited_and_a_form_needs_its_token(monkeypatch):
    cache.clear()
    monkeypatch.setattr(QuestionThrottle, "THROTTLE_RATES", {"ask": "2/min"})
    browser = Client()
    statuses = [browser.post("/ask/", {"question": "How heavy?"}, **HTMX).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert "Too many questions" in browser.post("/ask/", {"question": "How heavy?"}, **HTMX).content.decode()
    assert Answer.objects.count() == 2
    cache.clear()
    assert Client(enforce_csrf_checks=True).post("/ask/", {"question": "How heavy?"}).status_code == 403


def test_a_visitor_sees_only_their_own_conversations():
    mine, theirs = Client(), Client()
    mine.post("/ask/", {"question": "How heavy?"}, **HTMX)
    conversation = Conversation.objects.get()
    answer = Answer.objects.get()
    assert mine.get(f"/c/{conversation.pk}/").status_code == 200
    for path in (f"/c/{conversation.pk}/", f"/answers/{answer.pk}/stream/", f"/answers/{answer.pk}/debug/"):
        assert theirs.get(path).status_code == 404
    assert theirs.post(f"/c/{conversation.pk}/delete/").status_code == 404
    assert theirs.post(f"/answers/{answer.pk}/stop/").status_code == 404
    assert Conversation.objects.count() == 1


def test_a_refused_question_keeps_its_collection_without_scripts():
    for slug in ("manuals", "letters"):
        Collection.objects.create(slug=slug, name=slug)
    page = Client().post("/ask/", {"question": "x" * 5000, "collection": "letters"})
    assert page.status_code == 422
    assert '<option value="letters" selected>' in page.content.decode()
    assert page.content.decode().count(" selected") == 1


def test_a_name_that_cannot_be_stored_is_no_collection():
    Collection.objects.create(slug="manuals", name="Manuals")
    for name in ("\0", "manuals\0"):
        page = Client().post("/ask/", {"question": "How heavy?", "collection": name}, **HTMX)
        assert page.status_code == 422
        assert "There is no collection named" in page.content.decode()
    assert Answer.objects.count() == 0


STEPS = "To replace the seal:\n\n1. Switch the pump off.\n2. Close both valves.\n"
ROW = "sku: MX-9920-W; name: Wet-rotor circulation pump; weight_g: 3450; price_eur: 189.00"


def test_a_refusal_shows_the_near_places_as_what_they_are(owner, mine):
    conversation = Conversation.objects.create(owner=owner, title="Seals")
    place = {"document": {"id": 7, "title": "Manual", "url": ""}, "section": "Seals", "page": 3, "start": 0, "end": 20}
    near = [{**place, "quote": quote, "chunk_id": None} for quote in (STEPS, "```\nset_var(3)\n```", ROW)]
    refused = {"refused": True, "text": "The documents do not say this.", "status": Answer.Status.COMPLETED}
    Answer.objects.create(conversation=conversation, question="How?", alternatives=near, **refused)
    page = mine.get(f"/c/{conversation.pk}/").content.decode()
    assert '<p class="outcome-title">The documents do not say this.</p>' in page
    shown = page.partition('<ol class="results"')[2]
    assert "<ol>\n<li>Switch the pump off.</li>" in shown
    assert "<code>set_var(3)\n</code></pre>" in shown
    assert '<p class="record"><strong>sku</strong> MX-9920-W' in shown
    assert (
        shown.count('<span class="result-title">Manual</span> <span class="result-where">Seals · page\u00a03</span>')
        == 3
    )
    assert shown.count('<a href="/documents/7/?start=0&amp;end=20#passage">') == 3


@pytest.mark.parametrize("last", ["9" * 5000 + "-1", "1-9999999999999999999", "1-2-3", "\xb2-1", "none"])
def test_the_id_of_an_event_that_was_never_told_counts_as_none(last):
    conversation = Conversation.objects.create(owner=make_reader("owner"), title="Weights")
    answer = Answer.objects.create(
        conversation=conversation, question="How heavy?", text="3450 grams.", status=Answer.Status.COMPLETED
    )

    async def told(**headers):
        client = AsyncClient(headers=headers)
        await client.aforce_login(conversation.owner)
        response = await client.get(f"/answers/{answer.pk}/stream/")
        # The waiting time may differ by a second.
        return re.sub(rb'data-waited="\d+"', b"", b"".join([part async for part in response.streaming_content]))

    whole = async_to_sync(told)()
    assert b"event: reset" in whole
    assert b"3450 grams." in whole
    assert async_to_sync(told)(**{"Last-Event-ID": last}) == whole
