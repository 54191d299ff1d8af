"""What is measured again after documents in service changed, and who is told of a loss."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from evaluation.gates.verdicts import GateSubject, current_run, documents_being_read, is_worse, kind_of, runs_of
from evaluation.models import CorpusAlert, EvaluationRun, GatePolicy
from evaluation.runs.queue import UNFINISHED, request_run
from evaluation.runs.results import compare
from evaluation.sets.resolution import fingerprint, measured_questions
from retrieval.ranking.profile_json import to_json
from retrieval.search.profiles import active_profile

logger = logging.getLogger(__name__)

# A watched collection whose run failed is left alone for so long.
TRIED_AGAIN_AFTER = timedelta(hours=1)


def watch() -> int:
    """Have measured what is in force on each watched set whose documents changed and have been read since.

    Returns how many runs were asked for.
    """
    asked = 0
    profile = active_profile()
    in_force = GateSubject(str(profile), profile)
    for policy in GatePolicy.objects.filter(watches_corpus=True).select_related("evaluation_set"):
        evaluation_set = policy.evaluation_set
        kind = kind_of(policy)
        questions = measured_questions(evaluation_set, kind)
        runs = runs_of(policy, in_force)
        if (
            not questions
            or documents_being_read(evaluation_set.collection_id)
            or runs.filter(status__in=UNFINISHED).exists()
            or runs.filter(
                status=EvaluationRun.Status.FAILED, finished_at__gt=timezone.now() - TRIED_AGAIN_AFTER
            ).exists()
            or current_run(policy, in_force, fingerprint(questions, kind)) is not None
        ):
            continue
        request_run(evaluation_set, profile, kind=kind, trigger=EvaluationRun.Trigger.CORPUS)
        asked += 1
    return asked


def examine(run: EvaluationRun) -> CorpusAlert | None:
    """The alert that the run gives, saved: what is in force does significantly worse than before documents changed.

    None for a run of a draft, of anything else, of a set that nobody watches, of a kind that its gate does not ask for,
    or without an earlier one of the same settings and questions on other documents. It is compared with the last of
    these.
    """
    if run.draft_id is not None:
        return None
    policy = GatePolicy.objects.filter(evaluation_set=run.evaluation_set_id, watches_corpus=True).first()
    if policy is None or kind_of(policy) != run.kind or to_json(active_profile().settings) != run.settings:
        return None
    baseline = (
        EvaluationRun.objects.filter(
            pk__lt=run.pk,
            evaluation_set=run.evaluation_set_id,
            draft=None,
            kind=run.kind,
            settings=run.settings,
            fingerprint=run.fingerprint,
            conditions=run.conditions,
            status=EvaluationRun.Status.DONE,
            unreliable_reason="",
        )
        .exclude(corpus_version=run.corpus_version)
        .first()
    )
    if baseline is None:
        return None
    comparison = compare(run, baseline, policy.metric)
    difference = comparison.difference
    if difference is None or not is_worse(policy, comparison):
        return None
    logger.warning("%s does worse since documents changed: %s %+.3f.", policy, policy.metric, difference.mean)
    return CorpusAlert.objects.get_or_create(
        run=run,
        defaults={
            "policy": policy,
            "baseline": baseline,
            "difference": difference.mean,
            "low": difference.low,
            "high": difference.high,
        },
    )[0]


def open_alerts() -> QuerySet[CorpusAlert]:
    """What nobody has marked as seen, the newest first."""
    return CorpusAlert.objects.filter(acknowledged_at=None)
