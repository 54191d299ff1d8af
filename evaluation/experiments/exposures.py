"""Which arm's profile a visitor is searched with, and which answers were given within an experiment."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.dispatch import receiver
from django.utils import timezone

from chat.answering.approved_answers import NAME as APPROVED
from chat.models import Answer
from chat.signals import answer_completed
from evaluation.models import Experiment, Exposure
from evaluation.models.arms import Arm, assign, pseudonym
from retrieval.profile_settings import from_json
from retrieval.search.profiles import BUILT_IN, NamedProfile, named, register_chooser

logger = logging.getLogger(__name__)
SWEPT_BACK = timedelta(days=1)
BATCH = 1000
_FINISHED = (Answer.Status.COMPLETED, Answer.Status.STOPPED, Answer.Status.FAILED)


def choose(subject: str) -> NamedProfile | None:
    """The profile of the visitor's arm; None when no experiment runs, and for visitors outside of it.

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
    if arm is None:
        return None
    version = running.treatment if arm is Arm.TREATMENT else running.control
    if version is not None:
        return named(version)
    # The built-in profile as it was at the start.
    return NamedProfile(BUILT_IN, from_json(running.control_settings or {}))


def arm_of(experiment: Experiment, subject: str) -> Arm | None:
    return assign(experiment.salt, subject, experiment.traffic_share)


def record(answer: Answer) -> Exposure | None:
    """The answer's exposure, saved; None for an answer outside every experiment.

    Asked before the start or after the end; by somebody who takes no part; with a search method of the asker's own, or
    without any search, so that no profile had a say.
    """
    # At most one experiment ran at that moment.
    experiment = (
        Experiment.objects.filter(started_at__lte=answer.created_at)
        .filter(Q(ended_at=None) | Q(ended_at__gt=answer.created_at))
        .order_by("-started_at")
        .first()
    )
    exposure = _exposure(experiment, answer) if experiment is not None else None
    if exposure is not None:
        Exposure.objects.bulk_create([exposure], ignore_conflicts=True)
    return exposure


def sweep() -> int:
    """Record the answers that were not recorded: failed ones, and those whose process died right after them.

    Returns how many answers that were, of those asked within ``SWEPT_BACK``.
    """
    since = timezone.now() - SWEPT_BACK
    recent = Q(state=Experiment.State.RUNNING) | Q(ended_at__gt=since)
    found = 0
    for experiment in Experiment.objects.filter(recent, started_at__isnull=False):
        assert experiment.started_at is not None
        answers = Answer.objects.filter(
            exposure=None, status__in=_FINISHED, created_at__gte=max(experiment.started_at, since)
        )
        if experiment.ended_at is not None:
            answers = answers.filter(created_at__lt=experiment.ended_at)
        unrecorded = answers.select_related("conversation").only(
            "created_at", "status", "method", "search_method", "conversation__owner", "conversation__visitor"
        )
        exposures = [
            exposure
            for answer in unrecorded.iterator(chunk_size=BATCH)
            if (exposure := _exposure(experiment, answer)) is not None
        ]
        Exposure.objects.bulk_create(exposures, ignore_conflicts=True, batch_size=BATCH)
        found += len(exposures)
    if found:
        logger.info("Recorded %d answers of experiments that had not been recorded.", found)
    return found


def _exposure(experiment: Experiment, answer: Answer) -> Exposure | None:
    if answer.method or (answer.status == Answer.Status.COMPLETED and answer.search_method in ("", APPROVED)):
        return None
    subject = answer.conversation.subject
    arm = arm_of(experiment, subject)
    if arm is None:
        return None
    return Exposure(experiment=experiment, answer=answer, subject=pseudonym(experiment.salt, subject), arm=arm.value)


register_chooser(choose)


@receiver(answer_completed, dispatch_uid="evaluation.expose")
def record_exposure(answer: Answer, **_: Any) -> None:
    record(answer)
