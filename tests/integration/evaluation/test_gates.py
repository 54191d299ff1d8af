"""Gates: what must be measured before a version is published."""

import pytest

from evaluation import gates
from evaluation.gates import Verdict
from evaluation.models import EvaluationRun, ExpectedPassage, GatePolicy, QuestionResult
from retrieval import gates as publication_gates
from retrieval.gates import Gate, PublicationRefused
from retrieval.models import Document
from retrieval.search.profiles import profiles
from tests.support.evaluation_sets import BY_MEANING, BY_WORDS, measure_all, version_of
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def meaning(evaluation_set):
    """In force before there was a gate."""
    version = version_of(BY_MEANING)
    profiles.publish_profile(version)
    return version


@pytest.fixture
def words(meaning):
    return version_of(BY_WORDS)


@pytest.fixture
def policy(evaluation_set, meaning):
    return GatePolicy.objects.create(evaluation_set=evaluation_set, metric="hit@10")


def pretend_many(run, hits):
    """Give the run's questions these values, so that an interval is as narrow as a test needs it."""
    for result, hit in zip(run.results.all(), hits, strict=True):
        QuestionResult.objects.filter(pk=result.pk).update(hit=hit)


def test_what_is_worse_is_refused_and_what_is_not_is_published(policy, words, meaning):
    requested = gates.request_runs(policy, words)
    assert [run.profile_name for run in requested] == ["default v2", "default v1"]
    assert gates.check_gate(policy, words).verdict is Verdict.RUNNING
    with pytest.raises(PublicationRefused, match="is being measured"):
        profiles.publish_profile(words)
    measure_all()
    checked = gates.check_gate(policy, words)
    run, baseline = checked.candidate.run, checked.in_force.run
    assert gates.request_runs(policy, words) == []
    # Every question found before, and none found now.
    pretend_many(baseline, [1] * 6)
    pretend_many(run, [0] * 6)
    assert gates.check_gate(policy, words).verdict is Verdict.WORSE
    with pytest.raises(PublicationRefused, match=r"significantly worse than default v1: hit@10 -1.000"):
        profiles.publish_profile(words)
    # The profile is worse on one question of six: the interval contains 0.
    pretend_many(run, [0, 1, 1, 1, 1, 1])
    assert gates.check_gate(policy, words).verdict is Verdict.PASSED
    profiles.publish_profile(words)
    assert profiles.find_published_version() == words


def test_only_a_loss_beyond_chance_and_beyond_what_is_allowed_is_worse(policy, words):
    gates.request_runs(policy, words)
    measure_all()
    checked = gates.check_gate(policy, words)
    pretend_many(checked.in_force.run, [1] * 6)
    # Lost on all of the four questions that differ: by chance once in 16 times.
    pretend_many(checked.candidate.run, [0, 0, 0, 0, 1, 1])
    few = gates.check_gate(policy, words)
    assert few.comparison.difference.high < 0
    assert few.verdict is Verdict.PASSED
    pretend_many(checked.candidate.run, [0.7] * 6)
    for allowed, verdict in ((0.0, Verdict.WORSE), (0.29, Verdict.WORSE), (0.31, Verdict.PASSED)):
        policy.largest_loss = allowed
        assert gates.check_gate(policy, words).verdict is verdict


@pytest.mark.parametrize("change", ["documents", "questions", "conditions", "unreliable"])
def test_what_was_measured_before_something_changed_does_not_count(policy, words, library, ingest, change, settings):
    gates.request_runs(policy, words)
    measure_all()
    assert gates.check_gate(policy, words).comparison is not None
    if change == "documents":
        ingest(library, "new.md", "# New\n\nSomething new.")
    elif change == "questions":
        ExpectedPassage.objects.filter(source="pump.md").update(grade=2)
    elif change == "conditions":
        settings.RETRIEVAL_HYBRID_ENABLED = False
    else:
        EvaluationRun.objects.update(unreliable_reason="The documents changed while it ran.")
    checked = gates.check_gate(policy, words)
    assert checked.verdict is Verdict.NOT_MEASURED
    assert ("documents changed" in checked.failure) is (change == "unreliable")
    assert len(gates.request_runs(policy, words)) == 2


def test_what_is_in_force_may_be_published_under_another_name_and_the_built_in_is_measured_without_one(
    policy, words, meaning
):
    same = version_of(BY_MEANING, "other")
    assert gates.check_gate(policy, same).verdict is Verdict.IN_FORCE
    profiles.publish_profile(same)
    assert profiles.find_published_version() == same
    profiles.withdraw_published_profile()
    assert [run.profile_name for run in gates.request_runs(policy, words)] == ["default v2", "built-in"]
    measure_all()
    assert gates.check_gate(policy, words).comparison is not None


def test_a_set_without_questions_objects_unless_its_gate_is_not_required(policy, words):
    ExpectedPassage.objects.all().delete()
    with pytest.raises(PublicationRefused, match="nothing can be measured"):
        profiles.publish_profile(words)
    GatePolicy.objects.update(required_for_publishing=False)
    profiles.publish_profile(words)


def test_an_override_is_recorded_with_who_why_and_what_was_objected(policy, words, caplog):
    admin = make_reader("ada")
    publication = profiles.publish_profile(words, admin, override="  The customer waits.  ")
    assert profiles.find_published_version() == words
    publication.refresh_from_db()
    assert (publication.published_by, publication.override) == (admin, "The customer waits.")
    assert "have not both been measured" in publication.objections[0]["reason"]
    assert "published against objections" in caplog.text
    with pytest.raises(PublicationRefused):
        profiles.publish_profile(version_of(BY_WORDS, top_k=3), admin, override="   ")
    # There are no objections to override.
    GatePolicy.objects.all().delete()
    assert profiles.publish_profile(words, admin, override="because").override == ""


def test_a_gate_that_fails_objects_and_can_be_overridden(words, monkeypatch, caplog):
    def broken(version):
        list(Document.objects.raw("SELECT 1/0 AS id"))
        return []

    monkeypatch.setattr(publication_gates, "GATES", [Gate(broken, guards=lambda _: False)])
    with pytest.raises(PublicationRefused, match="A gate could not be checked: DataError"):
        profiles.publish_profile(words)
    assert "could not be asked about default v2" in caplog.text
    profiles.publish_profile(words, override="The gate is broken.")
    assert profiles.find_published_version() == words
