"""The same question of the same documents is answered once; whatever an answer depends on makes it another question."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone, translation
from prometheus_client import REGISTRY

from chat.answering import pipeline
from chat.models import Answer, Citation, Feedback
from chat.streaming import answer_cache, streams
from retrieval.index.chunk_writer import replace_chunk_questions
from retrieval.models import Chunk, Collection, CollectionStatistics, Document, SearchProfile
from retrieval.search.profiles import profiles
from retrieval.types import SearchFilters, Turn
from tests.support.asking import PUMP, QUESTION, answered, ask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def searches(monkeypatch):
    """Return the questions that were searched."""
    asked = []
    whole = pipeline.find_sources

    def counted(question, *args):
        asked.append(question)
        return whole(question, *args)

    monkeypatch.setattr(pipeline, "find_sources", counted)
    return asked


async def served_again(question=QUESTION, **options):
    return (await ask(question, **options))[0].repeats is not None


async def test_the_same_question_is_answered_from_before(library, searches):
    first, told = await ask()
    again, retold = await ask("  How heavy is\n the MX-9920-W? ")
    assert searches == [QUESTION]
    assert again.repeats == first
    assert first.repeats is None
    assert again.status == Answer.Status.COMPLETED
    for name in ("text", "search_method", "sources", "generator", "confidence", "statements", "profile_version"):
        assert getattr(again, name) == getattr(first, name), name
    assert again.trace["repeats"]["answer"] == str(first.pk)
    assert again.trace["candidates"] == first.trace["candidates"]
    assert set(again.timings_ms) == {"repeated", "total"}
    assert again.usage == {}

    assert [event.name for event in retold][0] == "searched"
    assert {event.name for event in retold[1:-1]} == {"token"}
    assert [event.event_id for event in retold] == [f"1-{n}" for n in range(1, len(retold) + 1)]
    assert retold[0].payload == told[0].payload
    assert "".join(event.payload["text"] for event in retold[1:-1]) == first.text
    last, last_before = retold[-1].payload, told[-1].payload
    assert (last["repeats"], last_before["repeats"]) == (True, False)
    assert last["repeated_from"] == first.completed_at.isoformat()
    assert last["citations"] == last_before["citations"] != []
    assert await Citation.objects.filter(answer=again).acount() == len(last["citations"])
    # A second look at it replays, as with any answer.
    replayed = [event async for event in streams.follow_answer_stream(again.pk)]
    assert [(event.event_id, event.payload) for event in replayed] == [(one.event_id, one.payload) for one in retold]


async def test_asked_anew_it_is_answered_anew_and_serves_from_then_on(library, searches):
    def counted(outcome):
        return REGISTRY.get_sample_value("ragsite_answer_cache_total", {"outcome": outcome}) or 0.0

    before = {outcome: counted(outcome) for outcome in ("hit", "miss", "off")}
    await ask()
    anew, _ = await ask(anew=True)
    assert (anew.repeats, len(searches)) == (None, 2)
    assert (await ask())[0].repeats == anew
    assert {outcome: counted(outcome) - before[outcome] for outcome in before} == {"hit": 1, "miss": 1, "off": 1}


async def test_a_published_profile_counts(library):
    await ask()

    def publish(top_k):
        profile, _ = SearchProfile.objects.get_or_create(slug="default", name="Default")
        profiles.publish_profile(profiles.add_version(profile, profiles.get_built_in_profile().__class__(top_k=top_k)))

    await sync_to_async(publish)(5)
    saved, _ = await ask()
    assert saved.repeats is None
    assert saved.profile_version_id is not None
    assert await served_again()
    await sync_to_async(publish)(6)
    assert not await served_again()


async def test_whoever_may_read_other_collections_gets_an_answer_of_their_own(library, ingest):
    secret = await Collection.objects.acreate(slug="secret", name="Secret", visibility="staff")
    await sync_to_async(ingest)(secret, "secret.md", "# MX-9920-W\n\nThe MX-9920-W secretly weighs 9 grams.")
    staff = await User.objects.acreate(username="staff", is_staff=True, is_superuser=True)
    known, _ = await ask(user=staff, visitor="")
    assert "9 grams" in " ".join(source["content"] for source in known.sources)
    for_visitors, _ = await ask()
    assert for_visitors.repeats is None
    assert "secretly" not in str(for_visitors.sources) + for_visitors.text
    assert await served_again(visitor="browser-2")
    # Narrowed to what visitors may read, it is the same question of the same documents.
    assert await served_again(collection="library", user=staff, visitor="")
    assert (await ask(user=staff, visitor=""))[0].repeats == known


async def test_a_copy_does_not_serve_when_its_original_was_deleted(library, monkeypatch):
    first, _ = await ask()
    copy, _ = await ask()
    assert (copy.repeats, copy.cache_key) == (first, "")
    found = await sync_to_async(answer_cache.find_reusable_answer)(first.cache_key)
    await sync_to_async(first.conversation.delete)()
    assert not await served_again()
    # Nor is an original missed that was deleted a moment after it was found.
    monkeypatch.setattr(answer_cache, "find_reusable_answer", lambda key: found)
    again, events = await ask()
    assert events[-1].name == "completed"
    assert (again.repeats, again.text) == (None, first.text)


CHANGES = {
    "a document has another title": lambda _: Document.objects.update(title="Pumps"),
    "a document has other metadata": lambda _: Document.objects.update(metadata={"year": 2026}),
    "a document is deleted": lambda _: Document.objects.all().delete(),
    "a passage has a question": lambda _: replace_chunk_questions(Chunk.objects.get(), ["What does it weigh?"]),
    "it has a notice": lambda _: Answer.objects.update(notice="The language model did not answer."),
    "a retriever failed": lambda _: Answer.objects.update(degraded=["vector"]),
    "it was stopped": lambda _: Answer.objects.update(status=Answer.Status.STOPPED),
    "it failed": lambda _: Answer.objects.update(status=Answer.Status.FAILED),
    "it is old": lambda _: Answer.objects.update(completed_at=timezone.now() - timedelta(days=8)),
    "it did not help": lambda again: Feedback.objects.create(answer=again.repeats, helpful=False),
    "it did not help again": lambda again: Feedback.objects.create(answer=again, helpful=False),
}


def test_only_a_whole_recent_and_helpful_answer_of_the_same_documents_serves(library, settings):
    first, again = answered(), answered()
    assert again.repeats == first

    def found():
        return answer_cache.find_cached_answer(first, first.build_search_filters(), (), "")[1]

    for change, make in CHANGES.items():
        with transaction.atomic():
            make(again)
            assert found() is None, change
            transaction.set_rollback(True)
    assert found() == first
    settings.ANSWER_CACHE_SECONDS = 0
    assert found() is None


def test_the_key_holds_what_the_answer_depends_on(library, settings, monkeypatch):
    filters = SearchFilters(collections=(library.pk,))
    keys = [
        answer_cache.build_key("How heavy?", filters),
        answer_cache.build_key("How high?", filters),
        # Capitals distinguish codes from names.
        answer_cache.build_key("how heavy?", filters),
        answer_cache.build_key("How heavy?", filters, method="rrf"),
        answer_cache.build_key("How heavy?", SearchFilters(collections=(library.pk,), languages=("en",))),
        answer_cache.build_key("How heavy?", filters, history=[Turn("What is it?", "A pump.")]),
        answer_cache.build_key("How heavy?", filters, history=[Turn("What is it?", "A valve.")]),
    ]
    with translation.override("nl"):
        keys.append(answer_cache.build_key("How heavy?", filters))
    settings.RETRIEVAL_HYBRID_ENABLED = False
    keys.append(answer_cache.build_key("How heavy?", filters))
    monkeypatch.setattr(answer_cache, "PROMPT_VERSION", 99)
    settings.OPENAI_BASE_URL, settings.OPENAI_MODEL = "http://127.0.0.1:9/v1", "tiny"
    keys.append(answer_cache.build_key("How heavy?", filters))
    settings.OPENAI_MODEL = "large"
    keys.append(answer_cache.build_key("How heavy?", filters))
    settings.OPENAI_API_KEY = "sk-other"
    assert answer_cache.build_key("How heavy?", filters) == keys[-1]
    assert len(set(keys)) == len(keys)
    assert answer_cache.build_key(" How  heavy?\n", filters) == keys[-1]


def test_what_is_asked_of_today_holds_today(library, settings, monkeypatch):
    settings.OPENAI_BASE_URL, settings.OPENAI_MODEL = "http://127.0.0.1:9/v1", "tiny"
    filters = SearchFilters(collections=(library.pk,))
    before = [answer_cache.build_key(question, filters) for question in ("Is it open today?", "Is it open on Monday?")]
    tomorrow = timezone.localdate() + timedelta(days=1)
    monkeypatch.setattr(answer_cache.timezone, "localdate", lambda: tomorrow)
    after = [answer_cache.build_key(question, filters) for question in ("Is it open today?", "Is it open on Monday?")]
    assert before[0] != after[0]
    assert before[1] == after[1]


async def test_a_document_changed_while_it_is_answered_is_asked_again(library, ingest, monkeypatch):
    quote = pipeline.quote_documents

    def meddle(question, sources, evidence):
        ingest(library, "pump.md", PUMP.replace("3450", "3500"))
        return quote(question, sources, evidence)

    monkeypatch.setattr(pipeline, "quote_documents", meddle)
    first, _ = await ask()
    assert "3450" in first.text
    monkeypatch.undo()
    again, _ = await ask()
    assert again.repeats is None
    assert "3500" in again.text


def test_only_a_description_that_differs_is_a_change(library):
    def version():
        return CollectionStatistics.objects.get(collection=library).version

    before = version()
    document = Document.objects.get()
    document.save()
    Document.objects.update(title=F("title"), progress_percent=50)
    assert version() == before
    document.url = "https://example.org/"
    document.save(update_fields=["url"])
    assert version() == before + 1
