"""A refusal with near places and what may have been meant: the same on every surface."""

import json
from dataclasses import replace

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.test import Client

from chat.answering import pipeline
from chat.conversations import sharing
from chat.models import Answer, Conversation
from chat.types import AlternativePassage, AnswerDraft, AnswerState, AnswerToken, CompletedEvent, QuestionChoice
from retrieval.models import Collection, Document
from tests.support.asking import answered
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORDS = "# Passwords\n\nA password for the console has at least 14 characters.\n\n- no names\n- no dates\n"
QUESTION = "How long must a password for the console be?"
SENTENCE = "The documents do not say this. Nearest passages:"
MEANT = ("How heavy is the MX-9920-W?", "How heavy is the MX-9940-W?")
CHOICES = tuple(QuestionChoice(question, question) for question in MEANT)


library = library_of({"passwords.md": PASSWORDS})


@pytest.fixture
def outcome(monkeypatch):
    """Give every answer this shape."""
    whole = pipeline.answer_question

    def shape_with(shape):
        async def answer(*args, **options):
            async for event in whole(*args, **options):
                if isinstance(event, AnswerDraft):
                    searched = event
                if isinstance(event, CompletedEvent):
                    event = shape(searched, event)
                if not isinstance(event, AnswerToken):
                    yield event

        monkeypatch.setattr(pipeline, "answer_question", answer)

    return shape_with


def refusal(searched, end):
    best = searched.sources[0].block.best
    start = best.content.index("A password")
    quote = best.content[start:]
    near = AlternativePassage(best, quote, quote, best.start + start, best.start + start + len(quote), 1.0)
    return CompletedEvent(
        SENTENCE, (), generator="extractive", state=AnswerState.CLOSEST, alternatives=(near,), choices=CHOICES
    )


def ask(user=None, **options):
    return answered(QUESTION, **({"user": user, "visitor": ""} if user else {}), **options)


def test_a_refusal_is_saved_and_served_again_with_its_near_places_and_choices(library, outcome):
    outcome(refusal)
    first = ask()
    (near,) = first.alternatives
    document = Document.objects.get()
    assert document.text.text[near["start"] : near["end"]] == near["quote"]
    shown = {"title": "Passwords", "url": "", "collection": "library", "media_type": "text/markdown"}
    assert near["document"] == {"id": document.pk, **shown}
    assert first.choices[0] == {"label": MEANT[0], "question": MEANT[0]}
    again = ask()
    assert again.repeats == first
    assert (again.refused, again.alternatives, again.choices) == (True, first.alternatives, first.choices)


def test_the_api_has_the_near_places_and_the_choices(library, outcome, api):
    outcome(refusal)
    body = api.post("/api/v1/ask/", {"question": QUESTION}, format="json").json()
    assert body["refused"] is True
    assert body["alternatives"][0]["quote"].startswith("A password for the console")
    assert [choice["question"] for choice in body["choices"]] == list(MEANT)
    schemas = api.get("/api/schema/?format=json").json()["components"]["schemas"]
    assert set(body["alternatives"][0]) == set(schemas["Alternative"]["properties"])
    assert set(body["choices"][0]) == set(schemas["QuestionChoice"]["properties"])


def test_a_completion_tells_the_near_places_as_text(library, outcome, api):
    outcome(refusal)
    body = {"messages": [{"role": "user", "content": QUESTION}]}
    completion = api.post("/v1/chat/completions", body, format="json").json()
    content = completion["choices"][0]["message"]["content"]
    assert content == (
        f"{SENTENCE}\n\nPasswords · Library\n\n"
        "> A password for the console has at least 14 characters.\n>\n> - no names\n> - no dates\n\n"
        f"Did you mean:\n- {MEANT[0]}\n- {MEANT[1]}"
    )
    assert completion["question_choices"][1]["question"] == MEANT[1]
    streamed = api.post("/v1/chat/completions", {**body, "stream": True}, format="json")
    assert _streamed_content(streamed) == content


def _streamed_content(response):
    async def joined():
        return b"".join([part async for part in response.streaming_content])

    lines = async_to_sync(joined)().decode().splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def test_the_command_prints_the_near_places_and_the_choices(library, outcome, capsys):
    outcome(refusal)
    call_command("ask", QUESTION)
    printed = capsys.readouterr().out
    assert printed.startswith(SENTENCE)
    assert "Passwords · Library" in printed
    assert "> - no dates" in printed
    assert f"Did you mean:\n- {MEANT[0]}" in printed
    call_command("ask", QUESTION, json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["refused"] is True
    assert told["alternatives"][0]["document"]["title"] == "Passwords"
    assert told["choices"][0]["question"] == MEANT[0]


def test_a_page_shows_a_refusal_with_its_near_places(library, outcome, mine, owner):
    outcome(refusal)
    answer = ask(owner)
    page = mine.get(f"/c/{answer.conversation_id}/").content.decode()
    assert SENTENCE in page
    assert "<li>no names</li>" in page
    near = answer.alternatives[0]
    assert f"/documents/{near['document']['id']}/?start={near['start']}&amp;end={near['end']}#passage" in page
    assert "Did you mean:" in page
    assert f'value="{MEANT[1]}">{MEANT[1]}</button>' in page
    shared = Client().get(f"/s/{sharing.share_conversation(answer.conversation)}/").content.decode()
    assert "<li>no names</li>" in shared
    assert "Did you mean:" not in shared


def test_what_is_quoted_is_said_to_be(library, mine, owner):
    answer = ask(owner)
    assert [cited.verbatim for cited in answer.citations.all()] == [True]
    assert answer.statements == []
    page = mine.get(f"/c/{answer.conversation_id}/").content.decode()
    assert 'data-support="Quoted word for word"' in page
    assert "Supports the sentence" not in page


@pytest.fixture
def refused_beside_a_secret(owner, library, ingest):
    """Return a refusal whose near place lies in another collection than its source."""
    secret = ingest(Collection.objects.create(slug="other", name="Other"), "codes.md", "# Codes\n\nThe code is 4711.\n")
    conversation = Conversation.objects.create(owner=owner, title="Codes")
    sheet = Document.objects.get(collection=library)
    place = {"document": {"id": sheet.pk, "title": "Passwords", "url": ""}, "section": "", "page": None}
    source = {**place, "marker": 1, "chunk_id": 1, "content": "x", "start": 0, "end": 1, "instructions": False}
    near = {**place, "document": {"id": secret.pk, "title": "Codes", "url": ""}, "quote": "The code is 4711."}
    return Answer.objects.create(
        conversation=conversation, question="What is the code?", text=SENTENCE, refused=True,
        alternatives=[{**near, "start": 9, "end": 26, "chunk_id": 1}], sources=[source],
        source_collections=[library.pk],
        search_method="hybrid", status=Answer.Status.COMPLETED,
    )  # fmt: skip


def test_near_places_are_shown_to_who_may_read_their_documents(refused_beside_a_secret, mine):
    answer = refused_beside_a_secret
    addresses = [
        f"/c/{answer.conversation_id}/",
        f"/api/v1/answers/{answer.pk}/",
        f"/api/v1/conversations/{answer.conversation_id}/",
    ]
    shared = f"/s/{sharing.share_conversation(answer.conversation)}/"
    for address in (*addresses, shared):
        assert "4711" in mine.get(address).content.decode(), address
    Collection.objects.filter(slug="other").update(visibility="staff")
    for address in (*addresses, shared):
        body = mine.get(address).content.decode()
        assert "4711" not in body, address
    assert "4711" not in Client().get(shared).content.decode()


def test_choices_may_name_what_any_searched_document_names(library, outcome, ingest):
    other = Collection.objects.create(slug="other", name="Other")
    ingest(other, "codes.md", "# Codes\n\nThe code is 4711.\n")
    outcome(lambda searched, end: replace(refusal(searched, end), alternatives=(), choices=()))
    assert other.pk not in ask(collection=library.slug).source_collections
    outcome(refusal)
    assert ask(collection=library.slug, anew=True).source_collections == [library.pk]
    assert ask(anew=True).source_collections == sorted([library.pk, other.pk])


def test_a_name_that_no_document_has_is_told(library):
    answer = answered("How long must a password for Frobnicate be?")
    assert "The documents do not mention Frobnicate." in answer.notice
