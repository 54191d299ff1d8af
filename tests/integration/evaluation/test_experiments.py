"""An experiment from its start to its publication, on a real database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone
from prometheus_client import REGISTRY

from chat import asking
from chat.models import Answer, Feedback
from chat.streaming import streams
from evaluation.experiments import exposures, lifecycle, outcomes
from evaluation.experiments.assignment import Arm
from evaluation.experiments.exposures import arm_of, choose
from evaluation.experiments.lifecycle import ExperimentRefused
from evaluation.experiments.report import ExperimentVerdict, report, sentence
from evaluation.models import Experiment, ExperimentIsFixed, Exposure, Judgement, Score
from retrieval.gates import Objection, PublicationRefused
from retrieval.search import profiles
from tests.support.experiments import LONG_AGO, answered, draft, simulate, started, versions, visitor

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _unjudged(settings):
    settings.EVALUATE_ANSWERS = False


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss")


def conversations(experiment, arm, number=1):
    """Visitors of that arm."""
    found = []
    at = 1000
    while len(found) < number:
        one = visitor(at)
        if arm_of(experiment, one.subject) is arm:
            found.append(one)
        at += 1
    return found


# Before and at the start ---------------------------------------------------------------------------------------------


def test_a_start_writes_the_plan_down(boss):
    experiment = lifecycle.start(draft(smallest_effect=0.1), boss)
    assert experiment.state == "running"
    assert experiment.started_by == boss
    assert experiment.planned_control == experiment.planned_treatment > 393, "what one look would take"
    fixed = lifecycle.plan(draft(name="One look", design="fixed", smallest_effect=0.1))
    assert fixed.control == 393


@pytest.mark.parametrize("field", ["alpha", "metric", "better", "design", "treatment_share", "salt", "planned_control"])
def test_what_matters_cannot_be_changed_after_the_start(boss, field):
    experiment = started(boss)
    changed = {
        "alpha": 0.2, "metric": "refusal", "better": "lower", "design": "fixed", "treatment_share": 0.6, "salt": "x",
        "planned_control": 1,
    }  # fmt: skip
    setattr(experiment, field, changed[field])
    with pytest.raises(ExperimentIsFixed):
        experiment.save()
    experiment.refresh_from_db()
    experiment.hypothesis = "A remark."
    experiment.save()


def test_one_runs_at_a_time(boss):
    started(boss)
    with pytest.raises(ExperimentRefused, match="“More passages” is running"):
        lifecycle.start(draft(name="Another"), boss)
    with pytest.raises(IntegrityError), transaction.atomic():
        Experiment.objects.filter(name="Another").update(state="running", started_at=timezone.now())
    with pytest.raises(ExperimentRefused, match="started before"):
        lifecycle.start(Experiment.objects.get(name="More passages"), boss)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"smallest_effect": 0.0}, "above 0"),
        ({"smallest_effect": 1e-7}, "ten million"),
        ({"smallest_effect": float("nan")}, "finite"),
        ({"baseline": 40.0}, "between 0 and 1"),
        ({"metric": "groundedness"}, "standard deviation"),
        ({"baseline": 0.0}, "standard deviation"),
        ({"metric": "latency_mean", "baseline": 900.0, "standard_deviation": -1.0}, "standard deviation"),
    ],
)
def test_numbers_that_allow_no_plan_are_refused(boss, changed, told):
    experiment = draft()
    for field, value in changed.items():
        setattr(experiment, field, value)
    with pytest.raises(ExperimentRefused, match=told):
        lifecycle.plan(experiment)


def test_arms_must_differ(boss):
    control, _ = versions()
    with pytest.raises(ExperimentRefused, match="same settings"):
        lifecycle.start(draft(control=control, treatment=control), boss)


def test_a_version_in_an_experiment_cannot_be_deleted():
    experiment = draft()
    with pytest.raises(ProtectedError):
        experiment.treatment.profile.delete()


# Who gets what -------------------------------------------------------------------------------------------------------


def test_a_visitor_is_searched_with_the_profile_of_the_arm(boss, settings):
    experiment = started(boss)
    (treated,), (controlled,) = (conversations(experiment, arm) for arm in (Arm.TREATMENT, Arm.CONTROL))
    assert profiles.profile_for(treated.subject).version_id == experiment.treatment_id
    assert profiles.profile_for(treated.subject).settings.top_k == 5
    assert profiles.profile_for(controlled.subject).version_id == experiment.control_id
    assert profiles.profile_for("").name == profiles.BUILT_IN, "without cookies nobody takes part"
    lifecycle.end(experiment, boss)
    assert profiles.profile_for(treated.subject).name == profiles.BUILT_IN


def test_the_built_in_control_stays_what_it_was_at_the_start(boss, settings):
    _, treatment = versions()
    experiment = started(boss, control=None, treatment=treatment)
    (controlled,) = conversations(experiment, Arm.CONTROL)
    before = profiles.profile_for(controlled.subject)
    settings.RETRIEVAL_TOP_K = before.settings.top_k + 7
    profiles.publish(versions()[0])
    assert profiles.profile_for(controlled.subject) == before
    assert before.version_id is None


def test_who_takes_no_part_gets_the_profile_in_force(boss):
    experiment = started(boss, traffic_share=0.2)
    (outside,) = conversations(experiment, None)
    assert choose(outside.subject) is None
    profiles.publish(experiment.treatment)
    assert profiles.profile_for(outside.subject) == profiles.active_profile()


def test_a_choice_that_fails_is_told_and_the_profile_in_force_serves(boss, caplog):
    experiment = started(boss)
    (treated,) = conversations(experiment, Arm.TREATMENT)
    type(experiment.treatment).objects.filter(pk=experiment.treatment_id).update(settings={"method": "gone"})
    failures = REGISTRY.get_sample_value("ragsite_search_profile_choice_failures_total") or 0.0
    assert profiles.profile_for(treated.subject).name == profiles.BUILT_IN
    assert REGISTRY.get_sample_value("ragsite_search_profile_choice_failures_total") == failures + 1
    assert "could not be chosen" in caplog.text


# Exposures -----------------------------------------------------------------------------------------------------------


def test_each_answer_is_exposed_once(boss):
    experiment = started(boss)
    answer = answered(experiment, visitor(1))
    exposures.record(answer)
    assert exposures.sweep() == 0
    (exposure,) = Exposure.objects.all()
    assert (exposure.answer, exposure.experiment) == (answer, experiment)
    assert Arm(exposure.arm) is arm_of(experiment, answer.conversation.subject)
    assert answer.conversation.visitor not in exposure.subject


def test_answers_outside_the_experiment_are_not_exposed(boss):
    experiment = started(boss, traffic_share=0.5)
    (inside,), (outside,) = conversations(experiment, Arm.CONTROL), conversations(experiment, None)
    answered(experiment, outside)
    answered(experiment, inside, at=experiment.started_at - timedelta(seconds=1))
    answered(experiment, inside, method="rrf")
    answered(experiment, inside, search_method="")
    nobody = visitor(1)
    nobody.visitor = ""
    nobody.save()
    answered(experiment, nobody)
    ended = lifecycle.end(experiment, boss)
    answered(experiment, inside, at=ended.ended_at + timedelta(seconds=1))
    assert Exposure.objects.count() == 0


def test_the_sweeper_records_what_was_forgotten_and_what_failed(boss):
    experiment = started(boss)
    now = timezone.now()
    forgotten = answered(experiment, visitor(1), at=now - timedelta(hours=2), tell=False)
    failed = answered(
        experiment, visitor(2), at=now - timedelta(hours=2), tell=False, status="failed", search_method=""
    )
    answered(experiment, visitor(3), at=now - timedelta(hours=2), tell=False, status="generating")
    assert exposures.sweep() == 2
    assert set(Exposure.objects.values_list("answer", flat=True)) == {forgotten.pk, failed.pk}
    assert exposures.sweep() == 0


# Outcomes ------------------------------------------------------------------------------------------------------------


def test_a_visitor_is_one_number_whatever_the_number_of_answers(boss):
    experiment = started(boss)
    conversation = visitor(1)
    for helpful in (True, True, True, False, None):
        answered(experiment, conversation, helpful=helpful)
    answered(experiment, visitor(2), helpful=False, refused=True)
    answered(experiment, visitor(3), status="failed", search_method="")
    visitors = outcomes.visitors_of(experiment)
    assert len(visitors) == 3
    assert sorted(visitors.answers) == [1, 1, 5]
    assert sorted(visitors.sample("helpful").values) == [0.0, 0.75]
    assert sorted(visitors.sample("refusal").values) == [0.0, 1.0]
    assert sorted(visitors.sample("failure").values) == [0.0, 0.0, 1.0]
    assert list(visitors.presence("helpful").values).count(0.0) == 1


def test_only_the_time_of_observation_counts_and_only_once_it_is_over(boss):
    experiment = started(boss)
    began = timezone.now() - timedelta(hours=30)
    returning, late, fresh = visitor(1), visitor(2), visitor(3)
    answered(experiment, returning, at=began, helpful=True)
    answered(experiment, returning, at=began + timedelta(hours=23), helpful=True)
    answered(experiment, returning, at=began + timedelta(hours=25), helpful=False)
    rated = answered(experiment, late, at=began + timedelta(minutes=1), helpful=False)
    Feedback.objects.filter(answer=rated).update(created_at=began + timedelta(hours=25))
    answered(experiment, fresh, at=timezone.now() - timedelta(hours=23), helpful=False)
    visitors = outcomes.visitors_of(experiment)
    assert list(visitors.sample("helpful").values) == [1.0]
    assert sorted(visitors.answers) == [1, 2]
    assert sum(visitors.observed.values()) == 1


def test_latency_leaves_repeated_and_unfinished_answers_out_and_judged_scores_come_from_the_rules(boss):
    experiment = started(boss)
    conversation = visitor(1)
    first = answered(experiment, conversation, timings_ms={"total": 100.0})
    answered(experiment, conversation, timings_ms={"total": 10_000.0})
    answered(experiment, conversation, timings_ms={"repeated": 1.0, "total": 2.0})
    answered(experiment, conversation, timings_ms={"total": 60_000.0}, status="failed")
    for judge, score in (("offline", 0.5), ("model", 0.9)):
        judgement = Judgement.objects.create(answer=first, judge=judge, status="done")
        Score.objects.create(judgement=judgement, metric="groundedness", score=score)
    visitors = outcomes.visitors_of(experiment)
    assert visitors.sample("latency_mean").values[0] == pytest.approx(5050.0)
    assert visitors.sample("latency").values[0] == pytest.approx(6.9078, abs=1e-3)
    assert list(visitors.sample("groundedness").values) == [0.5]


def test_answers_that_were_searched_with_another_profile_are_told(boss):
    experiment = started(boss)
    answered(experiment, visitor(1))
    answered(experiment, visitor(2), profile_version=None)
    assert report(experiment).off_profile == 1


def test_the_present_is_told_for_planning(boss):
    experiment = started(boss)
    answered(experiment, visitor(1), helpful=True)
    answered(experiment, visitor(2), helpful=False)
    seen = outcomes.visitors_since(timezone.now() - timedelta(days=28), 24)
    assert seen.sample("helpful").control.mean == 0.5


# Conclusions ---------------------------------------------------------------------------------------------------------


def test_a_sequential_experiment_finds_a_known_effect_and_nothing_changes_it_later(boss):
    experiment = started(boss)
    simulate(experiment, 320, lambda arm: 0.8 if arm is Arm.TREATMENT else 0.4)
    told = report(experiment)
    assert told.verdict is ExperimentVerdict.TREATMENT
    assert told.conclusion.path.decided_at < 320
    assert told.primary.effect.low > 0
    assert sentence(told).startswith("The treatment is better: helpful rate, of the answers that were rated +")
    later = visitor(9000)
    answered(experiment, later, at=timezone.now() - timedelta(days=3), helpful=False)
    assert report(experiment).primary == told.primary
    assert not told.is_imbalanced
    assert not told.outcomes_differ


def test_without_an_effect_none_is_found_and_the_cap_ends_it(boss):
    experiment = started(boss, smallest_effect=0.45)
    assert experiment.planned_control == 100
    simulate(experiment, 260, lambda arm: 0.6)
    told = report(experiment)
    assert told.verdict is ExperimentVerdict.NO_DIFFERENCE
    assert told.winner is None
    with pytest.raises(ExperimentRefused, match="Neither"):
        lifecycle.publish_winner(experiment, boss)


def test_a_lower_rate_is_better_where_that_was_written_down(boss):
    experiment = started(boss, metric="refusal", better="lower")
    simulate(experiment, 240, lambda arm: 0.5)
    treated = Exposure.objects.filter(arm="treatment").values("answer")
    Answer.objects.filter(pk__in=treated).update(refused=True)
    told = report(experiment)
    assert told.verdict is ExperimentVerdict.CONTROL
    assert sentence(told).startswith("The control is better: the treatment's refusal rate +100.0 pp")


def test_a_fixed_horizon_shows_nothing_before_it_and_the_same_ever_after(boss):
    experiment = started(boss, design="fixed", smallest_effect=0.3)
    assert experiment.planned_control == 100
    simulate(experiment, 150, lambda arm: 0.9 if arm is Arm.TREATMENT else 0.3)
    told = report(experiment)
    assert told.primary is None
    assert told.conclusion.effect is None
    assert told.verdict is ExperimentVerdict.WAITING
    assert "helpful" not in {one.measure.outcome for one in told.guards}
    ended = lifecycle.end(experiment, boss)
    assert report(ended).verdict is ExperimentVerdict.STOPPED_EARLY
    assert report(ended).primary is None
    assert "nothing can be said" in ended.conclusion


def test_lost_visitors_make_every_result_unsound(boss):
    experiment = started(boss)
    simulate(experiment, 300, lambda arm: 0.9 if arm is Arm.TREATMENT else 0.2)
    assert report(experiment).winner is Arm.TREATMENT
    lost = Exposure.objects.filter(arm="control").values_list("subject", flat=True).distinct()[:100]
    Exposure.objects.filter(subject__in=list(lost)).delete()
    told = report(experiment)
    assert told.verdict is ExperimentVerdict.UNSOUND
    assert told.winner is None


def test_who_rates_more_often_in_one_arm_is_told(boss):
    experiment = started(boss)
    simulate(experiment, 300, lambda arm: 0.5)
    assert not report(experiment).outcomes_differ
    treated = Exposure.objects.filter(arm="treatment").values("answer")
    silent = list(Feedback.objects.filter(answer__in=treated).values_list("pk", flat=True))[::2]
    Feedback.objects.filter(pk__in=silent).delete()
    assert report(experiment).outcomes_differ


# The end -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def won(boss):
    experiment = started(boss)
    simulate(experiment, 300, lambda arm: 0.9 if arm is Arm.TREATMENT else 0.3)
    return experiment


def test_the_winner_is_published_and_the_experiment_ends(won, boss):
    assert lifecycle.publish_winner(won, boss) == str(won.treatment)
    won.refresh_from_db()
    assert (won.state, won.ended_by, won.published_by) == ("ended", boss, boss)
    assert won.conclusion.startswith("The treatment is better")
    assert profiles.published_version() == won.treatment
    assert choose(visitor(1).subject) is None


def test_a_gate_that_objects_leaves_everything_as_it_is(won, boss, monkeypatch):
    monkeypatch.setattr("retrieval.gates._gates", [lambda version: [Objection("Not measured yet.")]])
    with pytest.raises(PublicationRefused, match="Not measured yet"):
        lifecycle.publish_winner(won, boss)
    won.refresh_from_db()
    assert (won.state, won.ended_at, won.published_at) == ("running", None, None)
    assert profiles.published_version() is None
    lifecycle.publish_winner(won, boss, override="Visitors have spoken.")
    assert profiles.published_version() == won.treatment


def test_a_built_in_control_that_wins_is_put_back(boss):
    _, treatment = versions()
    profiles.publish(treatment)
    experiment = started(boss, control=None, treatment=treatment)
    simulate(experiment, 300, lambda arm: 0.9 if arm is Arm.CONTROL else 0.3)
    lifecycle.publish_winner(experiment, boss)
    assert profiles.published_version() is None


def test_what_does_not_run_cannot_be_ended(boss):
    with pytest.raises(ExperimentRefused, match="does not run"):
        lifecycle.end(draft(), boss)


# The whole way -------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
async def test_real_questions_are_answered_with_the_arms_profile_and_exposed(collection, ingest):
    from asgiref.sync import sync_to_async

    def prepared() -> Experiment:
        boss = User.objects.create_superuser("boss")
        for number in range(8):
            ingest(collection, f"pump-{number}.md", f"# MX-{number}\n\nThe pump MX-{number} weighs {number}450 grams.")
        return lifecycle.start(draft(), boss)

    experiment = await sync_to_async(prepared)()
    arms = set()
    for number in range(8):
        answer = await sync_to_async(asking.begin)(
            "How heavy is the pump MX-3?", user=AnonymousUser(), visitor=f"{number:032x}"
        )
        _ = [event async for event in streams.follow(answer.pk)]
        answer = await Answer.objects.select_related("exposure").aget(pk=answer.pk)
        assert answer.status == "completed"
        exposure = answer.exposure
        arms.add(exposure.arm)
        treated = exposure.arm == "treatment"
        assert answer.profile_version_id == (experiment.treatment_id if treated else experiment.control_id)
        assert answer.trace["top_k"] == (5 if treated else 3)
    assert arms == {"control", "treatment"}
    told = await sync_to_async(report)(experiment)
    assert told.off_profile == 0
    assert sum(size.observed for size in told.arms) == 8
    # The same question was asked by all: an earlier answer serves within an arm, never across.
    assert await Answer.objects.exclude(repeats=None).acount() == 6


def test_long_ago_is_longer_than_any_observation():
    assert timedelta(hours=24) < LONG_AGO
