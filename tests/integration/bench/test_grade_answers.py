"""Grading answers of this site's own code, and of a running site."""

import io
import json

import httpx2
import pytest
from django.core.management import CommandError, call_command

from bench.answers import askers
from bench.answers.askers import SiteAsker
from bench.answers.graded import GradedQuestion
from evaluation.expectations import AnswerExpectations
from retrieval.models import Collection
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

PUMPS = "# Pumps\n\nThe MX-9920-W weighs 3450 grams.\n\nThe MX-9940-W weighs 5100 grams.\n"
ROWS = [
    {"id": "1", "kind": "fact", "question": "How heavy is the MX-9920-W?", "must": ["3450"], "max_chars": 300},
    {"id": "2", "kind": "followup", "question": "and the MX-9940-W?", "must": ["5100"], "max_chars": 300, "after": "1"},
    {"id": "3", "kind": "off_topic", "question": "Who won the football world cup in 1998?", "must": ["REFUSE"]},
]


library = library_of({"pumps.md": PUMPS})


@pytest.fixture
def questions(tmp_path, library):
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps({"corpus": library.slug, **row}) + "\n" for row in ROWS))
    return path


def graded(*arguments, **options):
    out = io.StringIO()
    call_command("grade_answers", *map(str, arguments), stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def test_answers_are_graded_told_saved_and_written(questions, tmp_path):
    page, saved = tmp_path / "quality.md", tmp_path / "out.jsonl"
    page.write_text("Before.\n\n<!-- graded answers -->\n<!-- /graded answers -->\n\nAfter.\n")
    printed = graded(questions, save=saved, write=page)
    assert "3.00 [3.00 3.00] (3)" in printed
    assert "off-topic refused" in printed
    rows = [json.loads(line) for line in saved.read_text().splitlines()]
    assert [(row["score"], row["refused"]) for row in rows] == [(3, False), (3, False), (3, True)]
    assert "| fact | 3.00 (1) | 3.00 [3.00 3.00] (1) |" in page.read_text()
    assert page.read_text().startswith("Before.")
    told = json.loads(graded(questions, json=True))
    assert told["points"] == {"mean": 3.0, "low": 3.0, "high": 3.0, "questions": 3}
    assert told["shares"]["wrongly_refused"]["mean"] == 0.0


def test_what_is_not_there_is_told(questions, monkeypatch):
    with pytest.raises(CommandError, match="asks nothing of the corpus 'x'"):
        graded(questions, corpus="x")
    Collection.objects.update(slug="renamed")
    with pytest.raises(CommandError, match="There is no collection named"):
        graded(questions)

    def post(*_args, **_options):
        raise httpx2.ConnectError("refused")

    monkeypatch.setattr(askers.httpx2, "post", post)
    with pytest.raises(CommandError, match="No site answers at"):
        graded(questions, url="http://127.0.0.1:1")


ANSWER = {"answer": "3450 g [1]", "refused": False, "alternatives": [], "completed_question": "", "conversation": "c-1"}
CITED = {"citations": [{"document": {"title": "Pumps"}}, {"document": {"title": "Pumps"}}]}


def asked(asker, identifier="1", after=""):
    return asker(
        GradedQuestion(identifier, "parts", "parts", "How heavy?", "fact", AnswerExpectations(("3450",)), after)
    )


def test_a_running_site_is_asked_within_its_limits(monkeypatch):
    responses = [
        httpx2.Response(429, headers={"Retry-After": "7"}),
        httpx2.Response(200, json={**ANSWER, **CITED}),
        httpx2.Response(200, json={**ANSWER, **CITED}),
        httpx2.Response(503, text="Busy"),
    ]
    sent = []
    slept = []

    def post(address, **options):
        sent.append({"address": address, **options})
        return responses[len(sent) - 1]

    monkeypatch.setattr(askers.httpx2, "post", post)
    monkeypatch.setattr(askers.time, "sleep", slept.append)
    asker = SiteAsker("http://127.0.0.1:8000/", token="key")
    reply = asked(asker)
    assert (reply.text, reply.cited, reply.refused, reply.error) == ("3450 g [1]", ("Pumps",), False, "")
    assert slept == [7.0]
    assert sent[0]["address"] == "http://127.0.0.1:8000/api/v1/ask/"
    assert sent[0]["headers"] == {"Authorization": "Token key"}
    assert sent[1]["json"] == {"question": "How heavy?", "anew": True, "collection": "parts"}
    asked(asker, "2", after="1")
    assert sent[2]["json"] == {"question": "How heavy?", "anew": True, "conversation": "c-1"}
    assert asked(asker).error == "503 Busy"
