"""Which profile a visitor of the running experiment is searched with."""

from __future__ import annotations

from evaluation.experiments.assignment import Arm, assign
from evaluation.models import Experiment
from retrieval.ranking.profile import from_json
from retrieval.search.profiles import BUILT_IN, NamedProfile, named


def choose(subject: str) -> NamedProfile | None:
    """The profile of the visitor's arm; None while nothing runs, and for whoever takes no part.

    Raises: ImproperProfile when the arm's settings cannot be read.
    """
    running = (
        Experiment.objects.select_related("control__profile", "treatment__profile")
        .filter(state=Experiment.State.RUNNING)
        .first()
    )
    if running is None:
        return None
    arm = arm_of(running, subject)
    return profile_of(running, arm) if arm is not None else None


def arm_of(experiment: Experiment, subject: str) -> Arm | None:
    return assign(
        experiment.salt,
        subject,
        traffic_share=experiment.traffic_share,
        treatment_share=experiment.treatment_share,
    )


def profile_of(experiment: Experiment, arm: Arm) -> NamedProfile:
    """The arm's profile; the built-in one as it was at the start. Raises: ImproperProfile."""
    version = experiment.treatment if arm is Arm.TREATMENT else experiment.control
    if version is not None:
        return named(version)
    return NamedProfile(BUILT_IN, from_json(experiment.control_settings or {}))
