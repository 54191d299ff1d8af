"""An answer's search with one setting changed: what comes in, goes out and moves, for whom, and how often."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from chat import asking
from chat.api.throttling import QuestionThrottle
from chat.debugging.reach import filters_of_both
from chat.debugging.replay.searching import baseline_of, replay, writers
from chat.models import Answer
from chat.streaming import streams
from chat.views.replay import form_for
from retrieval.models import Collection, Document, SearchProfile
from retrieval.ranking.profile import ProfileSettings
from retrieval.search import profiles
from retrieval.types import MetadataBoost, RetrieverWeights, SearchMethod
from tests.support.model_server import model_server
from tests.support.remembered import remembered

pytestmark = pytest.mark.django_db(transaction=True)

Ingest = Callable[..., Document]

TEXTS = {
    "pump.md": "# Pump\n\nThe MX-9920-W pump weighs 3450 grams. Its seal kits cost 12 euros.",
    "valve.md": "# Ball valve\n\nThe ball valve weighs 300 grams. Its price is 15 euros.",
    "zoo.md": "# Zoo\n\nThe zoo is open every day. An elephant is heavy, and weighs 5000 kg.",
    "pool.md": "# Swimming pool\n\nThe swimming pool is open from seven to ten. In winter, the pool closes at eight.",
}
QUESTION = "How heavy is the MX-9920-W pump?"


@pytest.fixture(autouse=True)
def _no_one_asked_before() -> None:
    cache.clear()


@pytest.fixture
@remembered
def library(collection: Collection, ingest: Ingest) -> Collection:
    for source, text in TEXTS.items():
        ingest(collection, source, text)
    return collection


@pytest.fixture
def staff(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("admin", password="a long enough one"))
    return client


def answered(question: str = QUESTION, **options: object) -> Answer:
    answer = asking.begin(question, user=None, visitor="browser-1", **options)  # type: ignore[arg-type]
    async_to_sync(streams.finish)(answer.pk)
    return Answer.objects.select_related("conversation", "profile_version").get(pk=answer.pk)


def filled_in(answer: Answer, **changed: object) -> dict[str, object]:
    """What a browser sends when these fields of the form have other values; None leaves a box unticked."""
    form = form_for(answer)
    values = {name: form.initial[name] for name in form.fields if name in form.initial} | changed
    return {
        f"{form.prefix}-{name}": value for name, value in values.items() if value is not None and value is not False
    }


def words_of(response: object) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())  # type: ignore[attr-defined]


def test_one_setting_is_changed_and_the_difference_told(library: Collection, staff: Client) -> None:
    answer = answered()
    before = Answer.objects.values().get()
    response = staff.post(f"/answers/{answer.pk}/replay/", filled_in(answer, top_k=2), HTTP_HX_REQUEST="true")
    assert response.status_code == 200
    told = words_of(response)
    assert "Passages returned: 8 → 2" in told
    kept = sum(candidate["rank"] is not None for candidate in answer.trace["candidates"])
    assert f"that come in: 0; that go out: {kept - 2};" in told
    assert told.count("goes out now: not among the first 2") == kept - 2
    assert "<!doctype" not in response.content.decode()
    assert Answer.objects.values().get() == before


def test_the_earlier_search_is_the_answers_own(library: Collection, staff: Client) -> None:
    for question, options in ((QUESTION, {}), (QUESTION, {"method": "rrf"}), ("weighs", {"method": "adaptive"})):
        answer = answered(question, **options)
        profile = baseline_of(answer).profile
        filters = filters_of_both(answer, User(is_staff=True, is_active=True))
        done = replay(answer, profile.settings, filters, baseline=profile)
        ranks = {c["chunk_id"]: c["rank"] for c in answer.trace["candidates"] if c["rank"] is not None}
        scores = {c["chunk_id"]: c["score"] for c in answer.trace["candidates"] if c["rank"] is not None}
        assert done.before.ranks == ranks
        assert {move.row.candidate.chunk_id: move.score_before for move in done.moves} == pytest.approx(scores)
        assert done.comparison.is_same
        assert {move.kind for move in done.moves} == {"same"}


def test_a_follow_up_is_searched_as_it_was_meant(library: Collection) -> None:
    first = answered("When is the swimming pool open?")
    answer = answered("and in winter?", conversation_id=first.conversation_id)
    profile = baseline_of(answer).profile
    filters = filters_of_both(answer, User(is_staff=True, is_active=True))
    form = form_for(answer, data=filled_in(answer, reformulate=None))
    assert form.is_valid(), form.errors
    done = replay(answer, form.changed_settings, filters, baseline=profile)
    assert done.before.trace is not None
    assert done.after.trace is not None
    assert done.before.trace.query == answer.trace["query"] != "and in winter?"
    assert done.after.trace.query == "and in winter?"


def test_parts_of_a_score_stand_beside_each_other(library: Collection) -> None:
    answer = answered()
    profile = baseline_of(answer).profile
    form = form_for(answer, data=filled_in(answer, vector_weight=0.1))
    assert form.is_valid(), form.errors
    assert form.changed_settings.weights == RetrieverWeights(vector=0.1, lexical=0.9)
    filters = filters_of_both(answer, User(is_staff=True, is_active=True))
    done = replay(answer, form.changed_settings, filters, baseline=profile)
    for move in done.moves:
        for score, values in (
            (move.score_before, [part.before for part in move.parts]),
            (move.score_after, [part.after for part in move.parts]),
        ):
            if score is not None:
                assert sum(value or 0 for value in values) == pytest.approx(score)
    assert any(part.before != part.after for move in done.moves for part in move.parts)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, "Nothing was changed"),
        ({"top_k": 3, "method": "rrf"}, "Change one setting at a time, to see what it does. Changed: Method, Passages"),
        ({"top_k": 0}, "greater than or equal to 1"),
        ({"vector_weight": 7}, "less than or equal to 1"),
        ({"vector_weight": "NaN"}, "Vector weight: Enter a number"),
        ({"method": "magic"}, "magic is not one of the available choices"),
        ({"top_k": 60}, "must not be larger than the depth of 50"),
    ],
)
def test_what_cannot_be_replayed_is_said(
    library: Collection, staff: Client, changed: dict[str, object], sentence: str
) -> None:
    answer = answered()
    response = staff.post(f"/answers/{answer.pk}/replay/", filled_in(answer, **changed), HTTP_HX_REQUEST="true")
    assert response.status_code == 422
    assert sentence in words_of(response)


def test_without_javascript_it_is_a_page(library: Collection, staff: Client) -> None:
    answer = answered()
    form = staff.get(f"/answers/{answer.pk}/replay/").content.decode()
    assert "csrfmiddlewaretoken" in form
    page = staff.post(f"/answers/{answer.pk}/replay/", filled_in(answer, method="lexical"))
    assert "<!doctype html>" in page.content.decode()
    assert "Method: zscore → lexical" in words_of(page)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get())
    assert strict.post(f"/answers/{answer.pk}/replay/", filled_in(answer, top_k=2)).status_code == 403


@pytest.mark.parametrize("method", ["lexical", "vector"])
def test_a_leg_that_was_asked_alone_has_no_weight_to_change(library: Collection, staff: Client, method: str) -> None:
    answer = answered(method=method)
    assert "vector_weight" not in form_for(answer).fields
    response = staff.post(f"/answers/{answer.pk}/replay/", filled_in(answer, vector_weight=0.2))
    assert response.status_code == 422
    assert "Nothing was changed" in words_of(response)


def test_replays_count_as_questions(library: Collection, staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = answered()
    monkeypatch.setattr(QuestionThrottle, "THROTTLE_RATES", {"ask": "1/min"})
    path = f"/answers/{answer.pk}/replay/"
    assert staff.post(path, filled_in(answer)).status_code == 422
    assert staff.post(path, filled_in(answer, top_k=2)).status_code == 200
    refused = staff.post(path, filled_in(answer, top_k=2), HTTP_HX_REQUEST="true")
    assert refused.status_code == 429
    assert "Too many questions" in words_of(refused)


def test_nothing_is_searched_that_asker_or_viewer_may_not_read(
    library: Collection, ingest: Ingest, settings: LazySettings
) -> None:
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    closed = Collection.objects.create(slug="closed", name="Closed", is_public=False)
    ingest(closed, "secret.md", "# Secret\n\nThe MX-9920-W pump weighs nothing at all. Nobody may know.")
    answer = answered()
    everyone, admin = User(), User(is_staff=True, is_active=True)
    assert filters_of_both(answer, admin).collections == (library.pk,)
    of_admin = Answer.objects.get(pk=answer.pk)
    owner = User.objects.create_superuser("admin", password="a long enough one")
    of_admin.conversation.owner, of_admin.conversation.visitor = owner, ""
    assert set(filters_of_both(of_admin, admin).collections) == {library.pk, closed.pk}
    assert filters_of_both(of_admin, everyone).collections == (library.pk,)

    Collection.objects.update(visibility="staff")
    asker = Client()
    session = asker.session
    session[asking.VISITOR_KEY] = "browser-1"
    session.save()
    of_visitor = answered()
    response = asker.post(f"/answers/{of_visitor.pk}/replay/", filled_in(of_visitor, top_k=2), HTTP_HX_REQUEST="true")
    # Nothing was searched for it either.
    assert response.status_code == 404
    of_visitor.trace = answer.trace
    of_visitor.save()
    response = asker.post(f"/answers/{of_visitor.pk}/replay/", filled_in(of_visitor, top_k=2), HTTP_HX_REQUEST="true")
    assert response.status_code == 422
    assert "You may not search the documents of this answer any more" in words_of(response)


def test_the_answers_profile_is_the_one_that_is_changed(library: Collection, staff: Client) -> None:
    profile = SearchProfile.objects.create(slug="parts", name="Parts")
    boosts = (MetadataBoost("department", "service", 0.5),)
    version = profiles.add_version(profile, ProfileSettings(top_k=3, method=SearchMethod.RRF, metadata_boosts=boosts))
    answer = answered()
    assert "boosts" not in form_for(answer).fields
    Answer.objects.filter(pk=answer.pk).update(profile_version=version)
    answer = Answer.objects.get(pk=answer.pk)
    assert baseline_of(answer).profile.name == "parts v1"
    form = form_for(answer, data=filled_in(answer, boosts=None))
    assert form.is_valid(), form.errors
    assert (form.changed_settings.metadata_boosts, form.changed_settings.top_k) == ((), 3)

    answer.profile_version = None
    answer.trace["profile"] = "parts v1"
    answer.save()
    assert "is gone" in baseline_of(answer).notice
    page = staff.post(f"/answers/{answer.pk}/replay/", filled_in(answer, top_k=2))
    assert "The search profile of this answer is gone" in words_of(page)


def test_the_answer_is_written_again_from_the_other_passages(library: Collection, staff: Client) -> None:
    answer = answered()
    assert not answer.refused
    saved = staff.post(f"/answers/{answer.pk}/replay/", filled_in(answer, top_k=2, writer="quoted"))
    assert "Before, as it was given" in words_of(saved)
    assert words_of(saved).count("3450 grams") >= 2
    nothing = staff.post(f"/answers/{answer.pk}/replay/", filled_in(answer, top_k=2))
    assert "as it was given" not in words_of(nothing)
    unknown = staff.post(f"/answers/{answer.pk}/replay/", filled_in(answer, top_k=2, writer="model"))
    assert unknown.status_code == 422


def test_a_model_writes_both_or_says_that_it_does_not(
    library: Collection, staff: Client, settings: LazySettings
) -> None:
    answer = answered()
    with model_server() as server:
        settings.OPENAI_BASE_URL, settings.OPENAI_MODEL = server.url, "tiny"
        assert list(writers()) == ["quoted", "model"]
        server.pieces = ["It weighs ", "3450 grams [1]."]
        path = f"/answers/{answer.pk}/replay/"
        told = words_of(staff.post(path, filled_in(answer, top_k=2, writer="model")))
        assert told.count("It weighs 3450 grams [1].") == 2
        assert len(server.requests) == 2
        server.statuses = [400] * 10
        told = words_of(staff.post(path, filled_in(answer, top_k=2, writer="model")))
        assert "did not write an answer" in told
