"""The page's own requests. What a person sees is tested in a browser."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client

from chat.models import Answer, Conversation
from chat.throttling import QuestionThrottle

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HTTP_HX_REQUEST": "true"}


def test_questions_from_one_place_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    monkeypatch.setattr(QuestionThrottle, "THROTTLE_RATES", {"ask": "2/min"})
    browser = Client()
    statuses = [browser.post("/ask/", {"question": "How heavy?"}, **HTMX).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    refused = browser.post("/ask/", {"question": "How heavy?"}, **HTMX)
    assert "Too many questions" in refused.content.decode()
    assert Answer.objects.count() == 2
    cache.clear()


def test_a_visitor_sees_only_their_own_conversations() -> None:
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


def test_a_form_without_its_token_is_refused() -> None:
    assert Client(enforce_csrf_checks=True).post("/ask/", {"question": "How heavy?"}).status_code == 403
