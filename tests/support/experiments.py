"""Experiments and their simulated visitors, as rows of a real database."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from chat.models import Answer, Conversation, Feedback
from evaluation import experiments
from evaluation.arms import ExperimentArm
from evaluation.experiments import find_arm
from evaluation.models import Experiment
from retrieval.models import SearchProfile
from retrieval.search.profiles import profiles

LONG_AGO = timedelta(days=20)


def versions():
    """Two versions of a profile: the first hands over three passages, the second five."""
    profile, _ = SearchProfile.objects.get_or_create(slug="tried", defaults={"name": "Tried"})
    built_in = profiles.get_built_in_profile()
    return (
        profiles.add_version(profile, replace(built_in, top_k=3)),
        profiles.add_version(profile, replace(built_in, top_k=5)),
    )


def draft(**changed):
    """Return an experiment on the helpful rate."""
    if "treatment" not in changed:
        changed["control"], changed["treatment"] = versions()
    values = {
        "name": "More passages",
        # Fixed, so that the arms of the numbered visitors below are always the same.
        "salt": "5a17",
        **changed,
    }
    return Experiment.objects.create(**values)


def started(started_by, **changed):
    """Return a running experiment that began long ago."""
    experiment = experiments.start_experiment(draft(**changed), started_by)
    Experiment.objects.filter(pk=experiment.pk).update(started_at=timezone.now() - LONG_AGO)
    experiment.refresh_from_db()
    return experiment


def visitor(number):
    return Conversation.objects.create(visitor=f"{number:032x}")


def answered(experiment, conversation, *, at=None, helpful=None, **changed):
    """Return an answer as the chat leaves it for this visitor of the experiment."""
    answer = _answer(experiment, conversation, at or timezone.now() - LONG_AGO + timedelta(hours=1), **changed)
    _save([answer], {} if helpful is None else {answer.pk: helpful})
    return answer


def simulate(experiment, visitors, rate):
    """Visitors who come one after the other, ask one to three questions each, and rate every answer."""
    random = np.random.default_rng(1)
    began = timezone.now() - LONG_AGO + timedelta(hours=1)
    conversations = Conversation.objects.bulk_create(
        Conversation(visitor=f"{number:032x}") for number in range(visitors)
    )
    answers, ratings = [], {}
    for number, conversation in enumerate(conversations):
        arm = find_arm(experiment, conversation.experiment_subject)
        for question in range(int(random.integers(1, 4))):
            at = began + timedelta(minutes=number, seconds=question)
            answers.append(_answer(experiment, conversation, at))
            if arm is not None:
                ratings[answers[-1].pk] = bool(random.random() < rate(arm))
    _save(answers, ratings)


def _answer(experiment, conversation, at, **changed):
    arm = find_arm(experiment, conversation.experiment_subject)
    version = {ExperimentArm.TREATMENT: experiment.treatment, ExperimentArm.CONTROL: experiment.control, None: None}[
        arm
    ]
    values = {
        "conversation": conversation, "question": "How heavy is the pump?", "status": Answer.Status.COMPLETED,
        "search_method": "adaptive", "text": "3450 grams.", "profile_version": version, "created_at": at,
        "completed_at": at + timedelta(seconds=1),
    }  # fmt: skip
    return Answer(**{**values, **changed})


def _save(answers, ratings):
    """Save the rows with the times they have; the database would say that they are of now."""
    with pytest.MonkeyPatch.context() as patched:
        for model in (Answer, Feedback):
            patched.setattr(model._meta.get_field("created_at"), "auto_now_add", False)
        Answer.objects.bulk_create(answers)
        Feedback.objects.bulk_create(
            Feedback(
                answer_id=answer.pk, helpful=ratings[answer.pk], created_at=answer.created_at + timedelta(minutes=1)
            )
            for answer in answers
            if answer.pk in ratings
        )
