"""An experiment's start, its end, and the publication of its winner; each is recorded with who did it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _t

from evaluation.experiments.report import report, sentence
from evaluation.models import Experiment
from evaluation.models.arms import Arm
from retrieval.profile_settings import ImproperProfile, to_json
from retrieval.search import profiles

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    User = AbstractBaseUser | AnonymousUser


class ExperimentRefused(Exception):
    """An action on an experiment is not possible now; the message tells the admin why."""


def start(experiment: Experiment, started_by: User) -> Experiment:
    """The experiment, running from now on.

    Raises: ExperimentRefused when it is no draft, when another one runs, or when its arms do not differ or cannot be
    read.
    """
    with transaction.atomic():
        # Two that start at once take turns; the loser sees the other one running.
        states = {one.pk: one for one in Experiment.objects.select_for_update().order_by("pk")}
        experiment = states[experiment.pk]
        if experiment.state != Experiment.State.DRAFT:
            raise ExperimentRefused(_t("This experiment has been started before."))
        running = next((one for one in states.values() if one.state == Experiment.State.RUNNING), None)
        if running is not None:
            raise ExperimentRefused(_t("“%s” is running: end it first.") % running)
        try:
            control = experiment.control.read() if experiment.control else profiles.built_in_profile()
            treatment = experiment.treatment.read()
        except ImproperProfile as error:
            raise ExperimentRefused(_t("One of the profiles cannot be read: %s") % error) from error
        if control == treatment:
            raise ExperimentRefused(_t("Control and treatment have the same settings, so there is nothing to find."))
        experiment.control_settings = to_json(control) if experiment.control is None else None
        experiment.state = Experiment.State.RUNNING
        experiment.started_at, experiment.started_by_id = timezone.now(), started_by.pk
        experiment.save()
    return experiment


def end(experiment: Experiment, ended_by: User) -> Experiment:
    """The experiment, ended, with its conclusion in words. Raises: ExperimentRefused when it does not run."""
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if experiment.state != Experiment.State.RUNNING:
            raise ExperimentRefused(_t("This experiment does not run."))
        experiment.state = Experiment.State.ENDED
        experiment.ended_at, experiment.ended_by_id = timezone.now(), ended_by.pk
        experiment.conclusion = sentence(report(experiment))
        experiment.save()
    return experiment


def publish_winner(experiment: Experiment, published_by: User, *, override: str = "") -> str:
    """End the experiment if it runs, put its winner in force, and return what is in force now.

    Nothing is changed when the winner cannot be published. ``override`` is a reason to publish against the objections
    of the gates. To go back to the built-in profile asks no gate. Raises: ExperimentRefused without a winner, or
    when the built-in profile won and is another one by now; PublicationRefused when a gate objects; ImproperProfile
    when the winner's settings cannot be read.
    """
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if experiment.state == Experiment.State.DRAFT:
            raise ExperimentRefused(_t("This experiment has not been started."))
        winner = report(experiment).winner
        if winner is None:
            raise ExperimentRefused(_t("Neither profile has won, so there is none to publish."))
        if experiment.state == Experiment.State.RUNNING:
            experiment = end(experiment, published_by)
        version = experiment.treatment if winner.arm is Arm.TREATMENT else experiment.control
        if version is None:
            if to_json(profiles.built_in_profile()) != experiment.control_settings:
                raise ExperimentRefused(
                    _t("The built-in profile is not the one that won: the settings were changed since the start.")
                )
            profiles.withdraw()
        elif not version.is_published:
            profiles.publish(version, published_by, override=override)
        experiment.published_at, experiment.published_by_id = timezone.now(), published_by.pk
        experiment.save()
    return winner.profile
