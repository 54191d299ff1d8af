"""An experiment from its start to its end, on a real database."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction
from django.utils import timezone

from chat.answering.approved_answers import NAME as APPROVED
from chat.models import Answer, Conversation, Feedback
from chat.streaming import asking, streams
from evaluation import experiments
from evaluation.arms import ExperimentArm
from evaluation.experiments import (
    ExperimentRefused,
    ExperimentVerdict,
    build_report,
    choose_profile,
    describe_verdict,
    find_arm,
)
from evaluation.models import Experiment
from retrieval.search.profiles import profiles
from tests.support.experiments import answered, draft, simulate, started, versions, visitor
from tests.support.people import make_reader, make_superuser

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss():
    return make_superuser("boss")


def conversations(experiment, arm, number=1):
    """Visitors of that arm."""
    found = []
    at = 1000
    while len(found) < number:
        one = visitor(at)
        if find_arm(experiment, one.experiment_subject) is arm:
            found.append(one)
        at += 1
    return found


def test_what_cannot_be_started_or_ended_is_refused(boss):
    with pytest.raises(ExperimentRefused, match="does not run"):
        experiments.end_experiment(draft(), boss)
    control, treatment = versions()
    with pytest.raises(ExperimentRefused, match="same settings"):
        experiments.start_experiment(draft(name="Same", control=control, treatment=control), boss)
    started(boss, name="First", control=control, treatment=treatment)
    second = draft(name="Second", control=control, treatment=treatment)
    with pytest.raises(ExperimentRefused, match="“First” is running"):
        experiments.start_experiment(second, boss)
    with pytest.raises(IntegrityError), transaction.atomic():
        Experiment.objects.filter(pk=second.pk).update(state="running", started_at=timezone.now())


def test_a_visitor_is_searched_with_the_profile_of_the_arm(boss, settings):
    experiment = started(boss, traffic_share=0.5, control=None, treatment=versions()[1])
    (treated,), (controlled,), (outside,) = (
        conversations(experiment, arm) for arm in (ExperimentArm.TREATMENT, ExperimentArm.CONTROL, None)
    )
    assert profiles.choose_profile_for_visitor(treated.experiment_subject).version_id == experiment.treatment_id
    assert profiles.choose_profile_for_visitor(treated.experiment_subject).settings.top_k == 5
    assert profiles.choose_profile_for_visitor("").name == profiles.BUILT_IN, "without cookies nobody takes part"
    # The built-in control stays as it was at the start; others get the profile in force.
    before = profiles.choose_profile_for_visitor(controlled.experiment_subject)
    assert before.version_id is None
    settings.RETRIEVAL_TOP_K = before.settings.top_k + 7
    profiles.publish_profile(versions()[0])
    assert profiles.choose_profile_for_visitor(controlled.experiment_subject) == before
    assert choose_profile(outside.experiment_subject) is None
    assert profiles.choose_profile_for_visitor(outside.experiment_subject) == profiles.active_profile()
    experiments.end_experiment(experiment, boss)
    assert profiles.choose_profile_for_visitor(treated.experiment_subject) == profiles.active_profile()


def test_a_choice_that_fails_is_told_and_the_profile_in_force_serves(boss, caplog):
    experiment = started(boss)
    (treated,) = conversations(experiment, ExperimentArm.TREATMENT)
    type(experiment.treatment).objects.filter(pk=experiment.treatment_id).update(settings={"method": "gone"})
    assert profiles.choose_profile_for_visitor(treated.experiment_subject).name == profiles.BUILT_IN
    assert "could not be chosen" in caplog.text


def compared(experiment):
    """Return the metrics of the report by name, over both arms: the visitors and the sum of their numbers."""
    summary = build_report(experiment)
    values = {
        metric: [*summary.control.values[metric], *summary.treatment.values[metric]] for metric in summary.effects
    }
    return {metric: (len(numbers), sum(numbers)) for metric, numbers in values.items()}


def arms_of(experiment):
    summary = build_report(experiment)
    return [summary.control, summary.treatment]


def test_answers_outside_the_experiment_do_not_count(boss):
    experiment = started(boss, traffic_share=0.5)
    (inside,), (outside,) = conversations(experiment, ExperimentArm.CONTROL), conversations(experiment, None)
    answered(experiment, outside)
    answered(experiment, inside, at=experiment.started_at - timedelta(seconds=1))
    answered(experiment, inside, method="rrf")
    answered(experiment, inside, search_method="")
    answered(experiment, inside, search_method=APPROVED)
    answered(experiment, inside, status="generating")
    answered(experiment, Conversation.objects.create(visitor=""))
    ended = experiments.end_experiment(experiment, boss)
    answered(experiment, inside, at=ended.ended_at + timedelta(seconds=1))
    assert [arm.visitors + arm.observed for arm in arms_of(ended)] == [0, 0]
    answered(experiment, inside)
    assert [arm.visitors for arm in arms_of(ended)] == [1, 0]


def test_a_visitor_is_one_number_whatever_the_number_of_answers(boss):
    experiment = started(boss)
    conversation, account = visitor(1), make_reader("reader")
    for helpful in (True, True, True, False, None):
        answered(experiment, conversation, helpful=helpful)
    answered(experiment, visitor(2), helpful=False, refused=True)
    answered(experiment, visitor(3), status="failed", search_method="")
    # An account is one visitor in all of its conversations.
    for _ in range(2):
        answered(experiment, Conversation.objects.create(owner=account), helpful=True)
    assert sum(size.visitors for size in arms_of(experiment)) == 4
    assert sum(size.answers for size in arms_of(experiment)) == 9
    assert compared(experiment) == {"helpful": (3, 1.75), "refusal": (3, 1.0)}


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
    assert compared(experiment)["helpful"] == (1, 1.0)
    arms = arms_of(experiment)
    assert sum(size.answers for size in arms) == 3
    assert sum(size.observed for size in arms) == 1


def test_an_effect_is_judged_by_its_metric_and_no_effect_is_none(boss):
    """The pages' tests have the effects on the helpful rate."""
    experiment = started(boss)
    simulate(experiment, 320, lambda _arm: 0.6)
    assert build_report(experiment).verdict is ExperimentVerdict.WAITING
    assert describe_verdict(build_report(experiment)).startswith("No decision yet: helpful rate")
    treated = [
        answer.pk
        for answer in Answer.objects.select_related("conversation")
        if find_arm(experiment, answer.conversation.experiment_subject) is ExperimentArm.TREATMENT
    ]
    Answer.objects.filter(pk__in=treated).update(refused=True)
    assert experiments.end_experiment(experiment, boss).conclusion.startswith("No difference was found")
    experiment.metric = "refusal"
    assert build_report(experiment).verdict is ExperimentVerdict.CONTROL
    assert describe_verdict(build_report(experiment)).startswith("The control is better: refusal rate +100.0 pp")


@pytest.mark.django_db(transaction=True)
async def test_real_questions_are_answered_with_the_arms_profile_and_counted(collection, ingest):
    from asgiref.sync import sync_to_async

    def prepared():
        boss = make_superuser("boss")
        for number in range(8):
            ingest(collection, f"pump-{number}.md", f"# MX-{number}\n\nThe pump MX-{number} weighs {number}450 grams.")
        return experiments.start_experiment(draft(), boss)

    experiment = await sync_to_async(prepared)()
    arms = set()
    for number in range(8):
        answer = await sync_to_async(asking.create_answer)(
            "How heavy is the pump MX-3?", user=AnonymousUser(), visitor=f"{number:032x}"
        )
        _ = [event async for event in streams.follow_answer_stream(answer.pk)]
        answer = await Answer.objects.select_related("conversation").aget(pk=answer.pk)
        assert answer.status == "completed"
        arm = find_arm(experiment, answer.conversation.experiment_subject)
        arms.add(arm)
        treated = arm is ExperimentArm.TREATMENT
        assert answer.profile_version_id == (experiment.treatment_id if treated else experiment.control_id)
        assert answer.trace["top_k"] == (5 if treated else 3)
    assert arms == set(ExperimentArm)
    assert sum(arm.observed for arm in await sync_to_async(arms_of)(experiment)) == 8
    # The same question was asked by all: an earlier answer serves within an arm, never across.
    assert await Answer.objects.exclude(repeats=None).acount() == 6
