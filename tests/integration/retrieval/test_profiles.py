"""Search profiles on a real PostgreSQL: versions, publication, and what a search makes of the one in force."""

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from django.db import connection

from chat.answering import pipeline
from core.dataclass_json import to_json
from retrieval.metrics import PROFILE_FAILURES
from retrieval.models import SearchProfile, SearchProfileVersion
from retrieval.models.profile import VersionIsImmutable
from retrieval.profile_settings import ImproperProfile, ProfileSettings
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.search.profiles import profiles
from retrieval.search.ranking import retrievers
from retrieval.search.trace import StageStatus
from retrieval.types import Retriever, SearchMethod
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

LEXICAL = ProfileSettings(method=SearchMethod.LEXICAL, top_k=1)
RRF = ProfileSettings(method=SearchMethod.RRF, top_k=2)


@pytest.fixture
def profile():
    return SearchProfile.objects.create(slug="default", name="Default")


library = library_of(
    {
        "pump.md": "# MX-9920-W\n\nThe MX-9920-W is a circulation pump.",
        "valve.md": "# Valves\n\nA ball valve closes with a quarter turn.",
        "hours.md": "# Opening hours\n\nThe warehouse is open from eight until five.",
    }
)


def ask(**options):
    return search("Which pump is open?", build_unrestricted_filters(), **options)


def in_force():
    return [str(version) for version in SearchProfileVersion.objects.filter(is_published=True)]


def test_a_saved_version_stays_as_it_is(profile):
    version = profiles.add_version(profile, LEXICAL)
    version.settings = to_json(RRF)
    with pytest.raises(VersionIsImmutable):
        version.save()
    with pytest.raises(VersionIsImmutable):
        version.save(update_fields=["settings"])
    version.refresh_from_db()
    assert version.read_settings() == LEXICAL


def test_without_a_published_version_the_settings_of_the_site_hold(library, profile, settings):
    profiles.add_version(profile, LEXICAL)
    settings.RETRIEVAL_TOP_K, settings.RETRIEVAL_DEFAULT_METHOD = 2, "linear"
    result = ask()
    assert (result.trace.profile, result.trace.search_method, len(result.hits)) == ("built-in", "linear", 2)


def test_the_next_search_uses_what_is_published_and_can_be_rolled_back(library, profile, admin_user):
    first, second = profiles.add_version(profile, LEXICAL), profiles.add_version(profile, RRF)
    profiles.publish_profile(first, admin_user)
    result = ask()
    assert (result.trace.profile, result.trace.search_method, len(result.hits)) == ("default v1", "lexical", 1)
    assert result.trace.profile == "default v1"
    profiles.publish_profile(second, admin_user)
    result = ask()
    assert (result.trace.profile, result.trace.search_method, len(result.hits)) == ("default v2", "rrf", 2)

    first.refresh_from_db()
    assert not first.is_published
    assert (first.published_by, second.published_by) == (admin_user, admin_user)
    before = first.published_at
    profiles.publish_profile(first)
    assert in_force() == ["default v1"]
    assert first.published_at > before
    assert ask().trace.profile == "default v1"

    assert profiles.withdraw_published_profile() == first
    assert in_force() == []
    assert ask().trace.profile == "built-in"
    assert profiles.withdraw_published_profile() is None


def test_of_many_who_publish_at_once_one_wins(profile):
    versions = [profiles.add_version(profile, replace(RRF, top_k=number)) for number in range(1, 9)]
    barrier = Barrier(len(versions))

    def publish(version):
        try:
            barrier.wait(60)
            profiles.publish_profile(version)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(versions)) as pool:
        list(pool.map(publish, versions))
    assert len(in_force()) == 1


def test_a_version_that_cannot_be_read_is_announced_and_the_built_in_one_used(library, profile, caplog):
    version = profiles.add_version(profile, LEXICAL)
    profiles.publish_profile(version)
    SearchProfileVersion.objects.filter(pk=version.pk).update(settings={"method": "magic", "later_setting": 1})
    before = PROFILE_FAILURES._value.get()
    with caplog.at_level(logging.ERROR):
        result = ask()
    assert result.trace.search_method == profiles.get_built_in_profile().method
    assert result.trace.profile == "built-in (instead of default v1)"
    assert "default v1, cannot be used" in caplog.text
    assert "later_setting: is not a setting" in caplog.text
    assert PROFILE_FAILURES._value.get() == before + 1

    version.refresh_from_db()
    with pytest.raises(ImproperProfile):
        profiles.publish_profile(version)


def test_an_answer_is_written_from_the_context_that_the_profile_asks_for(library, ingest, profile):
    sections = [
        f"# Part {number}\n\nThe pump of part {number} is open. " + "It hums all day. " * 40 for number in range(9)
    ]
    ingest(library, "long.md", "\n\n".join(sections))
    tight = ProfileSettings(context_budget_tokens=700, context_neighbours=0, context_blocks=2)
    profiles.publish_profile(profiles.add_version(profile, tight))
    searched = pipeline.find_sources("Which part hums all day?", build_unrestricted_filters(), None, (), "", None)
    assert searched.context.statistics["budget_tokens"] == 700
    assert searched.context.statistics["neighbours_added"] == 0
    assert searched.context.statistics["passages"] == 2
    assert searched.trace.profile == "default v1"


def test_with_the_switch_off_only_vectors_rank(library, profile, settings, monkeypatch):
    def never(*_arguments):
        raise AssertionError("The lexical retriever ran.")

    strict = ProfileSettings(method=SearchMethod.LEXICAL, score_threshold=5.0, reranker="gone", weights=None)
    profiles.publish_profile(profiles.add_version(profile, strict))
    settings.RETRIEVAL_HYBRID_ENABLED = False
    monkeypatch.setitem(retrievers.RANKERS, Retriever.LEXICAL, never)
    for method in (None, *SearchMethod):
        result = ask(method=method, reranker="gone")
        assert (result.trace.search_method, result.trace.degraded) == ("vector", ())
        assert {retriever.retriever: retriever.status for retriever in result.trace.retrievers} == {
            Retriever.LEXICAL: StageStatus.OFF,
            Retriever.VECTOR: StageStatus.OK,
        }
        assert result.trace.rerank is None
        # A threshold for BM25 scores would have dropped every cosine.
        assert len(result.hits) == 3
