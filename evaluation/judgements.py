"""Judge answers in the background, within a daily budget of tokens.

Each score is stored as soon as it is computed, because the worker may be killed. An error is stored as an error, never
as a score.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.dispatch import receiver
from django.utils import timezone

from chat.answering.checking.citations import CitationMarker
from chat.answering.extractive import NAME as EXTRACTIVE
from chat.models import Answer
from chat.payload_types import SourcePayload
from chat.signals import DisplayedScore, answer_completed, scores_wanted
from chat.types import ContextSource
from core.database import commit_without_waiting
from core.exceptions import LeaseLost
from core.job_queue import enqueue_on_commit
from core.jobs import acquire_lease, build_retry_due_condition, heartbeat
from evaluation import conf
from evaluation.judges.types import (
    JudgeBudgetSpent,
    JudgeError,
    JudgementCase,
    JudgeUnavailable,
    NotMeasurable,
    UnusableJudgement,
)
from evaluation.models import Judgement, JudgeUsage, Score
from evaluation.models.base import EvaluationJob
from retrieval.types import ContextBlock, Passage

# This must be shorter than the time after which the broker gives the task to a second worker.
LONGEST_SECONDS = 15 * 60.0


def count_spent_tokens() -> int:
    usage = JudgeUsage.objects.filter(day=timezone.localdate()).first()
    return usage.total_tokens if usage is not None else 0


class JobUsageMeter:
    """Checks the limits of a job that this worker has leased (reserved), and stores how many tokens it spends.

    The number is stored after each call of the language model.
    """

    def __init__(self, job: EvaluationJob, longest_seconds: float = LONGEST_SECONDS) -> None:
        self._job = job
        self._longest_seconds = longest_seconds
        self._deadline = time.monotonic() + longest_seconds

    def check_limits(self) -> None:
        if not self._job.filter_by_lease().exists():
            raise LeaseLost(f"{self._job.job_name} is no longer leased to this process.")
        if time.monotonic() > self._deadline:
            raise JudgeUnavailable(f"The judge was not done within {self._longest_seconds / 60:g} minutes.")
        budget = settings.JUDGE_DAILY_BUDGET_TOKENS
        if budget and count_spent_tokens() >= budget:
            raise JudgeBudgetSpent(f"The day's budget of {budget:,} tokens for judging is spent.")

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        consumed = {
            "prompt_tokens": F("prompt_tokens") + prompt_tokens,
            "completion_tokens": F("completion_tokens") + completion_tokens,
        }
        day = timezone.localdate()
        JudgeUsage.objects.get_or_create(day=day)
        JudgeUsage.objects.filter(day=day).update(**consumed)
        if isinstance(self._job, Judgement):
            self._job.write_under_lease(**consumed)


FORGOTTEN_AFTER = timedelta(minutes=2)
FORGOTTEN_UP_TO = timedelta(days=1)
MOST_AT_ONCE = 500


def request_judgements(answer: Answer, *, judges: Sequence[str] | None = None) -> list[Judgement]:
    """Create those judgements of the answer that do not exist yet, and queue them for workers."""
    wanted = choose_judges(answer) if judges is None else judges
    Judgement.objects.bulk_create((Judgement(answer=answer, judge=judge) for judge in wanted), ignore_conflicts=True)
    judgements = list(Judgement.objects.filter(answer=answer, judge__in=wanted).order_by("pk"))
    waiting = [made.pk for made in judgements if made.status == Judgement.QUEUED and made.enqueued_at is None]
    enqueue_on_commit(Judgement, waiting)
    return judgements


def choose_judges(answer: Answer) -> list[str]:
    """Return the judges of an answer. Rules judge every answer, and the language model judges a sample."""
    judges = [Judgement.Judge.OFFLINE.value]
    if settings.EVALUATE_WITH_MODEL and answer.repeats_id is None and conf.is_sampled(answer.pk):
        judges.append(Judgement.Judge.MODEL.value)
    return judges


def requeue_judgements(judgements: QuerySet[Judgement]) -> int:
    """Queue these judgements again, with the judges of the current settings. Return their number."""
    with transaction.atomic():
        ids = list(judgements.select_for_update(of=("self",)).values_list("pk", flat=True))
        Score.objects.filter(judgement__in=ids).delete()
        Judgement.objects.filter(pk__in=ids).update(
            **Judgement.get_restart_values(), finished_at=None, prompt_tokens=0, completion_tokens=0
        )
        enqueue_on_commit(Judgement, ids)
    return len(ids)


def request_missing_judgements() -> int:
    now = timezone.now()
    forgotten = Answer.objects.filter(
        ~Exists(Judgement.objects.filter(answer=OuterRef("pk"))),
        status=Answer.Status.COMPLETED,
        completed_at__range=(now - FORGOTTEN_UP_TO, now - FORGOTTEN_AFTER),
    ).only("pk", "repeats")
    return sum(bool(request_judgements(answer)) for answer in forgotten.order_by("completed_at")[:MOST_AT_ONCE])


logger = logging.getLogger(__name__)


def judge_answer(judgement_id: int) -> Judgement | None:
    """Try to make a judgement once, and return it; None if another worker is making it.

    An error is stored; if another attempt may succeed, its time is stored too.
    """
    waiting = Judgement.unfinished().filter(build_retry_due_condition()).select_related("answer")
    judgement = acquire_lease(waiting, judgement_id, status=Judgement.RUNNING)
    if judgement is None:
        return None
    try:
        with heartbeat(judgement):
            _judge_answer(judgement)
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except JudgeBudgetSpent as error:
        judgement.end(Judgement.Status.SKIPPED, str(error))
    except JudgeError as error:
        judgement.retry(str(error))
    except Exception as error:
        logger.exception("Answer %s could not be judged.", judgement.answer_id)
        judgement.retry(f"{type(error).__name__}: {error}")
    judgement.refresh_from_db()
    return judgement


def _judge_answer(judgement: Judgement) -> None:
    case = build_judgement_case(judgement.answer)
    judge = conf.build_judge(judgement.judge, JobUsageMeter(judgement))
    judgement.write_under_lease(judge_name=judge.name)
    metrics = judge.list_metrics(case)
    if not metrics:
        judgement.end(Judgement.Status.SKIPPED, "There is nothing to judge: the answer is a refusal without sources.")
        return
    measured = set(judgement.scores.filter(score__isnull=False).values_list("metric", flat=True))
    problems: list[str] = []
    another_attempt_helps = False
    for metric in metrics:
        if metric in measured:
            continue
        started = time.perf_counter()
        try:
            result = judge.measure(metric, case)
        except JudgeBudgetSpent:
            raise
        except JudgeError as error:
            _save(judgement, metric, started, score=None, error=str(error))
            problems.append(f"{Score.Metric(metric).label}: {error}")
            another_attempt_helps = another_attempt_helps or not isinstance(error, NotMeasurable)
            if not isinstance(error, UnusableJudgement):
                break
        else:
            _save(
                judgement,
                metric,
                started,
                score=result.score,
                error="",
                reason=result.reason,
                threshold=result.threshold,
                details=list(result.details),
            )
    if another_attempt_helps:
        raise JudgeError(" ".join(problems))
    judgement.end(Judgement.Status.FAILED if problems else Judgement.Status.DONE, " ".join(problems))


def _save(judgement: Judgement, metric: str, started: float, **values: Any) -> None:
    milliseconds = (time.perf_counter() - started) * 1000
    with transaction.atomic():
        judgement.lock()
        Score.objects.update_or_create(
            judgement=judgement, metric=metric, defaults={**values, "milliseconds": round(milliseconds, 1)}
        )


def build_judgement_case(answer: Answer) -> JudgementCase:
    """Return the answer with its question and sources, in the form that judges need.

    The question is the one that was searched: it can be understood without earlier questions.
    """
    return JudgementCase(
        question=answer.standalone_question,
        answer=answer.text,
        sources=tuple(_read_saved_source(saved) for saved in answer.sources if saved["content"].strip()),
        refused=answer.refused,
        is_quoted=answer.generator == EXTRACTIVE,
        markers=_load_markers(answer) or None,
    )


def _load_markers(answer: Answer) -> tuple[CitationMarker, ...]:
    cited = answer.citations.order_by("marker_start").values_list("marker", "marker_start", "marker_end")
    return tuple(CitationMarker(*each) for each in cited)


def _read_saved_source(saved: SourcePayload) -> ContextSource:
    passage = Passage(
        chunk_id=saved["chunk_id"],
        document_id=saved["document"]["id"],
        document_title=saved["document"]["title"],
        document_url=saved["document"]["url"],
        source="",
        collection="",
        ordinal=0,
        start=saved["start"],
        end=saved["end"],
        page=saved["page"],
        page_unit=saved.get("page_unit", "page"),
        heading_path=tuple(saved["section"].split(" › ")) if saved["section"] else (),
        content=saved["content"],
        content_hash="",
        token_count=0,
    )
    block = ContextBlock(
        best=passage,
        passages=(passage,),
        content=saved["content"],
        start=saved["start"],
        end=saved["end"],
        score=saved["score"],
        tokens=0,
    )
    return ContextSource(saved["marker"], block)


@receiver(scores_wanted, dispatch_uid="evaluation.scores")
def list_scores(answer: Answer, **_: Any) -> list[DisplayedScore]:
    """Return the scores and errors of the answer's judges: first the rules, then the language model.

    A judge that has not finished has an entry without a score.
    """
    found = []
    judgements = Judgement.objects.filter(answer=answer).prefetch_related("scores")
    for judgement in judgements.order_by("-judge"):  # The order is "offline" (rules) before "model".
        judge = judgement.get_judge_display()
        errors = 0
        for score in judgement.scores.all():
            errors += score.score is None
            name = f"{score.get_metric_display()} ({judge})"
            found.append(DisplayedScore(name, score=score.score, error=score.error, reason=score.reason))
        if not judgement.is_finished:
            found.append(DisplayedScore(judge, reason=judgement.error, pending=True))
        elif judgement.error and not errors:
            found.append(DisplayedScore(judge, error=judgement.error))
    return found


@receiver(answer_completed, dispatch_uid="evaluation.judge")
def judge_completed_answer(answer: Answer, **_: Any) -> None:
    # If a crash loses this row, `request_missing_judgements` creates it again.
    with commit_without_waiting():
        request_judgements(answer)
