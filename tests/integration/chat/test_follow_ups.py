"""A follow-up question finds what it means, by its conversation."""

from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from chat.conversations import rights
from chat.conversations.history import list_turns_before
from chat.models import Answer
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.search.profiles.profiles import get_built_in_profile
from retrieval.types import SearchMethod, Turn
from tests.support.asking import ask as asked
from tests.support.asking import begin
from tests.support.completion_server import completion_server
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)


TEXTS = {
    "library.md": "# Town library\n\nThe town library is open from nine to five. In winter, it closes at four.",
    "pool.md": "# Swimming pool\n\nThe swimming pool is open from seven to ten. In winter, the pool closes at eight.",
    "zoo.md": "# Zoo\n\nThe zoo is open every day. In winter, the zoo is closed on Mondays. A ticket costs 12 euros.",
    "pump.md": "# MX-9920-W\n\nThe MX-9920-W pump weighs 3450 grams. Its price is 210 euros.",
    "valve.md": "# Ball valve\n\nThe ball valve weighs 300 grams. Its price is 15 euros.",
}


library = library_of(TEXTS)


async def ask(question, **options):
    saved, events = await asked(question, **options)
    return saved, next(event.payload for event in events if event.name == "searched")


@pytest.mark.parametrize(
    ("first", "follow_up", "source", "words"),
    [
        ("When is the swimming pool open?", "and in winter?", "Swimming pool", "closes at eight"),
        ("When is the town library open?", "and in winter?", "Town library", "closes at four"),
        ("How heavy is the ball valve?", "what about its price?", "Ball valve", "15 euros"),
        ("Wie schwer ist das MX-9920-W?", "und der Preis?", "MX-9920-W", "210 euros"),
    ],
)
async def test_a_follow_up_finds_the_passage_it_means(library, first, follow_up, source, words):
    before, searched = await ask(first)
    assert searched["joined_question"] == ""
    answer, searched = await ask(follow_up, conversation_id=before.conversation_id)
    assert searched["sources"][0]["document"]["title"] == source
    assert any(words in found["content"] for found in searched["sources"])
    joined = f"{first} {follow_up}"
    assert searched["joined_question"] == answer.joined_question == answer.standalone_question == joined
    assert (searched["reformulation"], answer.completed_question) == (None, "")
    assert (answer.trace["query"], answer.trace["joined_query"]) == (follow_up, joined)


async def test_a_follow_up_to_a_code_is_searched_with_the_code(library):
    before, _ = await ask("How heavy is the MX-9920-W pump?")
    answer, searched = await ask("And what about its price?", conversation_id=before.conversation_id)
    assert searched["sources"][0]["document"]["title"] == "MX-9920-W"
    assert answer.standalone_question == answer.completed_question == "MX-9920-W: what about its price?"
    assert "210 euros" in answer.text
    assert answer.joined_question == ""
    # The next one points at the same code.
    later, _ = await ask("What does it weigh?", conversation_id=before.conversation_id)
    assert later.completed_question == "MX-9920-W: What does it weigh?"


async def test_the_stream_says_so_before_the_answer(library):
    before, _ = await ask("How heavy is the ball valve?")
    answer, _ = await ask("and its price?", conversation_id=before.conversation_id)
    client = AsyncClient()
    session = await sync_to_async(lambda: client.session)()
    session[rights.VISITOR_KEY] = "browser-1"
    await session.asave()
    client.cookies["sessionid"] = session.session_key
    streamed = []
    for each in (before, answer):
        response = await client.get(f"/answers/{each.pk}/stream/")
        streamed.append(b"".join([piece async for piece in response]).decode())
    assert ["Also searched together with your questions before it" in text for text in streamed] == [False, True]


def test_what_is_searched_twice_is_explained(library):
    history = [Turn("How heavy is the ball valve?", "300 grams.")]
    result = search("and its price?", build_unrestricted_filters(), history=history)
    texts = ["and its price?", "How heavy is the ball valve? and its price?"]
    assert result.hits[0].passage.source == "valve.md"
    assert result.trace.best_query == texts[1]
    for hit in result.hits:
        candidate = hit.candidate
        assert [each.query for each in candidate.searches] == texts
        parts = [score.contribution for score in candidate.retrievers.values()]
        assert candidate.score == pytest.approx(sum(parts))
    assert [hit.candidate.searches[1].rank for hit in result.hits][0] == 1


def test_a_question_that_stands_alone_is_not_disturbed(library):
    history = [Turn("How heavy is the MX-9920-W pump?"), Turn("And its price?"), Turn("Is the MX-9920-W in stock?")]
    question = "When does the town library close in winter?"
    alone = search(question, build_unrestricted_filters())
    after = search(question, build_unrestricted_filters(), history=history)
    assert after.hits[0].passage == alone.hits[0].passage
    assert after.trace.joined_query.startswith("And its price? Is the MX-9920-W in stock? When")
    assert after.trace.best_query == question
    assert alone.trace.joined_query == ""
    assert alone.hits[0].candidate.searches == ()


@pytest.mark.parametrize(
    "question",
    [
        "Is there a discount for students?",
        "Is there wifi in the hospital?",
        "Hoe duur is een taxi naar Amsterdam?",
        "Who is the prime minister of France?",
    ],
)
@pytest.mark.parametrize("before", ["How heavy is the ball valve?", "When is the swimming pool open?"])
async def test_a_new_subject_without_an_answer_is_refused_as_if_asked_first(library, before, question):
    alone, _ = await ask(question)
    first, _ = await ask(before)
    after, searched = await ask(question, conversation_id=first.conversation_id)
    assert searched["joined_question"] == ""
    assert (after.state, after.confidence) == (alone.state, alone.confidence)
    assert after.refused


@pytest.mark.parametrize("question", ['"ball valve"', "price -pump"])
def test_marks_of_the_syntax_are_not_joined(library, question):
    result = search(question, build_unrestricted_filters(), history=[Turn("How heavy is the MX-9920-W pump?")])
    assert result.trace.joined_query == ""
    assert all("pump" not in hit.passage.content for hit in result.hits)


def test_marks_in_earlier_questions_demand_nothing(library):
    history = [Turn("-valve"), Turn('"ball valve" -pump')]
    result = search("and its price?", build_unrestricted_filters(), history=history)
    assert result.trace.joined_query == "ball valve and its price?"
    assert {"pump.md", "valve.md"} <= {hit.passage.source for hit in result.hits}


def test_a_new_subject_is_searched_as_if_it_were_asked_alone(library):
    document = library.documents.get(source="pump.md")
    before = [Turn("How heavy is the MX-9920-W pump?", "3450 grams [1].", (document.pk,), ("library",))]
    question = "When is the swimming pool open?"
    alone, later = (
        search(question, build_unrestricted_filters()),
        search(question, build_unrestricted_filters(), history=before),
    )
    assert later.trace.joined_query == ""
    assert [(hit.passage.source, hit.score) for hit in later.hits] == [
        (hit.passage.source, hit.score) for hit in alone.hits
    ]
    # The word "it" refers to an earlier turn.
    before = [Turn("How heavy is the ball valve?", "300 grams [1].", (document.pk,), ("library",))]
    assert search("When is it open?", build_unrestricted_filters(), history=before).trace.joined_query


def test_a_long_conversation_leaves_the_question_room(library):
    history = [Turn("how long is it " * 40), Turn("zoo " * 100)]
    result = search("and its price?", build_unrestricted_filters(), history=history)
    assert result.trace.joined_query.endswith("zoo and its price?")
    assert len(result.trace.joined_query) < 650


async def test_another_conversation_lends_nothing(library):
    await ask("When is the swimming pool open?")
    answer, searched = await ask("and in winter?")
    assert searched["joined_question"] == ""
    assert "joined_query" not in answer.trace


def test_the_last_answered_turns_are_remembered(library):
    first = begin("one")
    later = [begin(str(n), conversation_id=first.conversation_id) for n in range(2, 7)]
    statuses = ["completed", "failed", "stopped", "completed", "pending"]
    for number, (answer, status) in enumerate(zip(later, statuses, strict=True)):
        Answer.objects.filter(pk=answer.pk).update(status=status, text=f"answer {number}", refused=number == 3)
    begin("of another")
    last = begin("last", conversation_id=first.conversation_id)
    assert list_turns_before(last) == (Turn("2", "answer 0"), Turn("4", "answer 2"), Turn("5", ""))
    assert list_turns_before(later[2]) == (Turn("2", "answer 0"),)


def test_the_model_is_told_the_conversation(library, model):
    model.content = "price of the MX-9920-W pump"
    result = search(
        "and that?", build_unrestricted_filters(), history=[Turn("How heavy is the MX-9920-W pump?", "3450 grams.")]
    )
    assert (result.trace.query, result.trace.reformulation.by) == (model.content, "tiny")
    assert result.trace.joined_query == ""
    assert result.hits[0].passage.source == "pump.md"
    assert "3450 grams." in model.requests[0]["messages"][1]["content"]


def test_without_the_model_both_are_searched_and_the_trace_says_why(library, model):
    model.status = 500
    done = search(
        "what about its price?", build_unrestricted_filters(), history=[Turn("How heavy is the ball valve?")]
    ).trace
    assert done.query == "what about its price?"
    assert done.joined_query == "How heavy is the ball valve? what about its price?"
    assert (done.reformulation.changed, "HTTP 500" in done.reformulation.notice) == (False, True)


def test_a_method_or_a_profile_may_leave_the_conversation_out(library):
    history = [Turn("How heavy is the ball valve?")]
    question = "what about its price?"
    published = search(question, build_unrestricted_filters(), history=history, method=SearchMethod.RRF).trace
    off = search(
        question,
        build_unrestricted_filters(),
        history=history,
        profile=replace(get_built_in_profile(), reformulate=False),
    ).trace
    for trace in (published, off):
        assert (trace.query, trace.joined_query, trace.reformulation) == (question, "", None)


@pytest.mark.parametrize("method", list(SearchMethod))
def test_every_method_searches_both(library, method):
    profile = replace(get_built_in_profile(), method=method, weights=None)
    result = search(
        "its price?", build_unrestricted_filters(), history=[Turn("How heavy is the MX-9920-W pump?")], profile=profile
    )
    assert result.hits[0].passage.source == "pump.md"
    assert result.hits[0].candidate.best_query == result.trace.joined_query


@pytest.fixture
def model(settings):
    with completion_server() as server:
        settings.QUERY_REFORMULATOR = {
            "BACKEND": "retrieval.search.understanding.model_reformulator.ModelReformulator",
            "OPTIONS": {"base_url": server.url, "api_key": "", "model": "tiny"},
        }
        yield server
