"""Questions as visitors ask them, in this process."""

import asyncio

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from chat.answering.checking.citations import find_markers
from chat.conversations import rights
from chat.conversations.history import store_sources_behind
from chat.models import Answer, Citation
from chat.streaming import asking, streams
from chat.types import AnswerToken

PUMP = "# MX-9920-W\n\nThe MX-9920-W is a wet-rotor pump. It weighs 3450 grams."
QUESTION = "How heavy is the MX-9920-W?"
VISITOR = "browser-1"


class Gated:
    """A language model that writes the end of its answer when the gate is opened."""

    name = "gated"
    may_refuse = True

    def __init__(self):
        self.gate = asyncio.Event()
        self.asked = 0

    async def compose(self, *_given):
        self.asked += 1
        yield token("It weighs ")
        await self.gate.wait()
        yield token("3450 grams [1].")


def token(text):
    """Return a piece of a model's answer, in which every number in brackets is a marker."""
    return AnswerToken(text, tuple(find_markers(text)))


def begin(question=QUESTION, **options):
    """Ask the question as a browser without an account, or as the ``user``, without answering it."""
    return asking.create_answer(question, **{"user": AnonymousUser(), "visitor": VISITOR, **options})


async def ask(question=QUESTION, **options):
    """Return the saved answer, and its events."""
    answer = await sync_to_async(begin)(question, **options)
    events = [event async for event in streams.follow_answer_stream(answer.pk)]
    return await Answer.objects.select_related("repeats", "conversation").aget(pk=answer.pk), events


def answered(question=QUESTION, **options):
    answer = begin(question, **options)
    async_to_sync(streams.complete_answer)(answer.pk)
    return Answer.objects.select_related("conversation", "profile_version").get(pk=answer.pk)


def saved_answer(conversation, question, *documents, **values):
    """Return a complete answer from these documents, which cites the first of them."""
    sources = [
        {
            "marker": 1, "chunk_id": 1, "section": "", "page": None, "instructions": False,
            "content": "The pump weighs 3450 grams.", "start": 0, "end": 27,
            "document": {"id": document.pk, "title": document.title, "url": ""},
        }
        for document in documents
    ]  # fmt: skip
    known = {"text": "It weighs 3450 grams [1].", "status": Answer.Status.COMPLETED, "sources": sources}
    answer = Answer.objects.create(conversation=conversation, question=question, **known | values)
    store_sources_behind(answer)
    answer.source_collections = values.get("source_collections", answer.source_collections)
    answer.save()
    at = max(0, answer.text.find("[1]"))
    place = {"marker": 1, "marker_start": at, "marker_end": at + 3, "start": 16, "end": 26}
    document = documents[0]
    Citation.objects.create(
        answer=answer, document=document, document_title=document.title, quote="3450 grams", **place
    )
    return answer


def client_of(user=None, visitor=""):
    """Return the browser of a user who has signed in, or of a visitor who has asked before."""
    client = Client()
    if user is not None:
        client.force_login(user)
    if visitor:
        session = client.session
        session[rights.VISITOR_KEY] = visitor
        session.save()
    return client
