"""A follow-up question finds what it means, by its conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from asgiref.sync import sync_to_async
from django.conf import LazySettings
from django.contrib.auth.models import AnonymousUser

from chat import asking
from chat.conversations.history import turns_before
from chat.models import Answer
from chat.streaming import streams
from retrieval.models import Collection, Document
from retrieval.rights.access import everything
from retrieval.search.pipeline import search
from retrieval.search.profiles import built_in_profile
from retrieval.types import SearchMethod, Turn
from tests.support.completion_server import CompletionServer, completion_server
from tests.support.remembered import remembered

pytestmark = pytest.mark.django_db(transaction=True)

Ingest = Callable[..., Document]

TEXTS = {
    "library.md": "# Town library\n\nThe town library is open from nine to five. In winter, it closes at four.",
    "pool.md": "# Swimming pool\n\nThe swimming pool is open from seven to ten. In winter, the pool closes at eight.",
    "zoo.md": "# Zoo\n\nThe zoo is open every day. In winter, the zoo is closed on Mondays. A ticket costs 12 euros.",
    "pump.md": "# MX-9920-W\n\nThe MX-9920-W pump weighs 3450 grams. Its price is 210 euros.",
    "valve.md": "# Ball valve\n\nThe ball valve weighs 300 grams. Its price is 15 euros.",
}


@pytest.fixture
@remembered
def library(collection: Collection, ingest: Ingest) -> Collection:
    for source, text in TEXTS.items():
        ingest(collection, source, text)
    return collection


def begin(question: str, **options: object) -> Answer:
    return asking.begin(question, user=AnonymousUser(), visitor="browser-1", **options)  # type: ignore[arg-type]


async def ask(question: str, **options: object) -> tuple[Answer, dict[str, object]]:
    answer = await sync_to_async(begin)(question, **options)
    events = [event async for event in streams.follow(answer.pk, "")]
    saved = await Answer.objects.select_related("conversation").aget(pk=answer.pk)
    return saved, next(event.payload for event in events if event.name == "searched")


@pytest.mark.parametrize(
    ("first", "follow_up", "source", "words"),
    [
        ("When is the swimming pool open?", "and in winter?", "Swimming pool", "closes at eight"),
        ("When is the town library open?", "and in winter?", "Town library", "closes at four"),
        ("How heavy is the MX-9920-W pump?", "what about its price?", "MX-9920-W", "210 euros"),
        ("How heavy is the ball valve?", "what about its price?", "Ball valve", "15 euros"),
    ],
)
async def test_a_follow_up_finds_the_passage_it_means(
    library: Collection, first: str, follow_up: str, source: str, words: str
) -> None:
    before, searched = await ask(first)
    assert searched["reformulation"] is None
    answer, searched = await ask(follow_up, conversation_id=before.conversation_id)
    assert searched["sources"][0]["document"]["title"] == source  # type: ignore[index]
    assert words in answer.text
    assert answer.question == follow_up
    done = answer.trace["reformulation"]
    assert searched["reformulation"] == {"query": done["query"], "reason": done["reason"], "by": "rules"}
    assert answer.trace["query"] == done["query"] != follow_up
    assert "reformulate" in answer.trace["timings_ms"]


async def test_another_conversation_lends_nothing(library: Collection) -> None:
    await ask("When is the swimming pool open?")
    answer, searched = await ask("and in winter?")
    assert searched["reformulation"] is None
    assert answer.trace["query"] == "and in winter?"


def test_the_last_answered_turns_are_remembered(library: Collection) -> None:
    first = begin("one")
    later = [begin(str(n), conversation_id=first.conversation_id) for n in range(2, 7)]
    statuses = ["completed", "failed", "stopped", "completed", "pending"]
    for number, (answer, status) in enumerate(zip(later, statuses, strict=True)):
        Answer.objects.filter(pk=answer.pk).update(status=status, text=f"answer {number}", refused=number == 3)
    begin("of another")
    last = begin("last", conversation_id=first.conversation_id)
    assert turns_before(last) == (Turn("2", "answer 0"), Turn("4", "answer 2"), Turn("5", ""))
    assert turns_before(later[2]) == (Turn("2", "answer 0"),)


def test_the_model_is_told_the_conversation(library: Collection, model: CompletionServer) -> None:
    model.content = "price of the MX-9920-W pump"
    result = search("and that?", everything(), history=[Turn("How heavy is the MX-9920-W pump?", "3450 grams.")])
    assert result.trace.reformulation is not None
    assert (result.trace.query, result.trace.reformulation.by) == (model.content, "tiny")
    assert result.hits[0].passage.source == "pump.md"
    assert "3450 grams." in model.requests[0]["messages"][1]["content"]


def test_a_model_that_fails_is_announced_in_the_trace(library: Collection, model: CompletionServer) -> None:
    model.status = 500
    done = search("what about its price?", everything(), history=[Turn("How heavy is the ball valve?")]).trace
    assert done.reformulation is not None
    assert done.query == "what about the price of the ball valve?"
    assert (done.reformulation.by, "HTTP 500" in done.reformulation.notice) == ("rules", True)


def test_what_is_named_is_searched_as_it_is(library: Collection) -> None:
    history = [Turn("How heavy is the ball valve?")]
    question = "Hi, what about its price?"
    assert search(question, everything(), history=history, method=SearchMethod.RRF).trace.reformulation is None
    off = built_in_profile().__class__(reformulate=False)
    trace = search(question, everything(), history=history, profile=off).trace
    assert (trace.query, trace.reformulation) == (question, None)


def test_what_is_searched_is_what_is_classified(library: Collection) -> None:
    trace = search("Hello, can you tell me what is a ball valve?", everything()).trace
    assert (trace.query, trace.query_class.value) == ("what is a ball valve?", "conceptual")


@pytest.fixture
def model(settings: LazySettings) -> Iterator[CompletionServer]:
    with completion_server() as server:
        settings.QUERY_REFORMULATOR = {
            "BACKEND": "retrieval.reformulation.llm.ModelReformulator",
            "OPTIONS": {"base_url": server.url, "api_key": "", "model": "tiny"},
        }
        yield server
