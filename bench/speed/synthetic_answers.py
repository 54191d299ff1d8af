"""Made-up answers with all that hangs on them, for timing what is reckoned over many of them.

Nothing in them means anything, but what time depends on is as in real ones: how wide the rows are and which of their
values lie out of line, how many scores and marks an answer has, and that answers lie in the table in the order in which
they were asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp
from random import Random
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from bench.reporting import Report
from chat.models import Answer, Conversation, Feedback
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, Experiment, Judgement, Score
from retrieval.models import Collection, Document, SearchProfile, SearchProfileVersion, Visibility
from retrieval.profile_settings import to_json
from retrieval.search import profiles

SLUG = "benchmark-answers"
DAYS = 90
ANSWERS_A_VISITOR = 2
ANSWERS_A_DOCUMENT = 20
VISITORS_AT_ONCE = 1000
MODELS = (Conversation, Answer, Feedback, Judgement, Score)

# By judge: the share of the complete answers that it judges, and its metrics with their thresholds.
JUDGES = {
    Judgement.Judge.OFFLINE: (
        1.0,
        {"groundedness": 0.5, "citation_support": 0.8, "answer_relevancy": 0.3, "contextual_relevancy": 0.3},
    ),
    Judgement.Judge.MODEL: (0.1, {"faithfulness": 0.5, "answer_relevancy": 0.5}),
}


@dataclass(frozen=True, slots=True)
class LoadedAnswers:
    """``experiment`` ran the whole time, and every visitor took part."""

    number: int
    collection: Collection
    experiment: Experiment
    build_seconds: float


def load(number: int, report: Report) -> LoadedAnswers:
    """So many answers of the last 90 days, of a collection of their own or of all collections.

    All appear in one transaction. Raises: EvaluationError when an experiment runs, which they would disturb.
    """
    if Experiment.objects.filter(state=Experiment.State.RUNNING).exists():
        raise EvaluationError("An experiment is running: made-up answers would be counted among its own.")
    remove()
    started, random, now = time.perf_counter(), Random(SLUG), timezone.now()
    visitors = -(-number // ANSWERS_A_VISITOR)
    begun = sorted(now - timedelta(minutes=10) - random.random() * timedelta(days=DAYS - 1) for _ in range(visitors))
    with transaction.atomic(), _own_times():
        collection = Collection.objects.create(
            slug=SLUG,
            name="Benchmark of answers",
            description="Made up by `manage.py benchmark_dashboard`; can be deleted.",
            visibility=Visibility.STAFF,
        )
        experiment = _experiment(now)
        documents = Document.objects.bulk_create(
            Document(collection=collection, title=name, source=name, content_hash=name, status=Document.Status.READY)
            for name in (f"{SLUG}-{place}" for place in range(max(5, number // ANSWERS_A_DOCUMENT)))
        )
        left = number
        for start in range(0, visitors, VISITORS_AT_ONCE):
            report("making up answers", number - left, number)
            conversations = [
                Conversation(
                    visitor=f"{SLUG}-{start + place}",
                    title=SLUG,
                    # Three of five ask the collection alone.
                    collection=collection if random.random() < 0.6 else None,
                    created_at=at,
                    updated_at=at,
                )
                for place, at in enumerate(begun[start : start + VISITORS_AT_ONCE])
            ]
            answers = [
                _answer(random, conversation, turn, documents)
                for conversation in conversations
                for turn in range(ANSWERS_A_VISITOR)
            ][:left]
            left -= len(answers)
            Conversation.objects.bulk_create(conversations)
            Answer.objects.bulk_create(answers)
            _mark_and_judge(random, answers)
    _settle()
    return LoadedAnswers(number, collection, experiment, time.perf_counter() - started)


def remove() -> None:
    """Delete what an earlier :func:`load` made, and have the indexes forget it."""
    conversations = Conversation.objects.filter(title=SLUG, visitor__startswith=SLUG)
    answers = Answer.objects.filter(conversation__in=conversations).order_by()
    judgements = Judgement.objects.filter(answer__in=answers).order_by()
    made_up: list[QuerySet[Any]] = [
        Score.objects.filter(judgement__in=judgements), judgements, Feedback.objects.filter(answer__in=answers),
        answers, conversations,
    ]  # fmt: skip
    with transaction.atomic():
        Experiment.objects.filter(name=SLUG).delete()
        EvaluationQuestion.objects.filter(answer__in=answers).update(answer=None)
        for rows in made_up:
            # To collect a hundred thousand objects and their kin takes minutes.
            rows._raw_delete(rows.db)
        Document.objects.filter(collection__slug=SLUG).delete()
        Collection.objects.filter(slug=SLUG).delete()
        SearchProfile.objects.filter(slug=SLUG).delete()
    _settle()


@contextmanager
def _own_times() -> Iterator[None]:
    """Within, rows keep the time of their making that they are given."""
    fields: list[Any] = [model._meta.get_field("created_at") for model in MODELS]
    for field in fields:
        field.auto_now_add = False
    try:
        yield
    finally:
        for field in fields:
            field.auto_now_add = True


def _settle() -> None:
    """Have PostgreSQL do now what it would do within minutes, so that it does not do it while things are timed."""
    vacuum = "ANALYZE" if connection.in_atomic_block else "VACUUM (ANALYZE)"
    with connection.cursor() as cursor:
        for model in (*MODELS, Document):
            cursor.execute(f"{vacuum} {model._meta.db_table}")


def _experiment(now: datetime) -> Experiment:
    """As if it had just ended: only one may run, and what is timed reads one that ended today like a running one."""
    profile = SearchProfile.objects.create(slug=SLUG, name=SLUG)
    settings = to_json(profiles.built_in_profile())
    version = SearchProfileVersion.objects.create(profile=profile, number=1, settings=settings)
    return Experiment.objects.create(
        name=SLUG,
        treatment=version,
        control_settings=settings,
        salt=SLUG,
        state=Experiment.State.ENDED,
        started_at=now - timedelta(days=DAYS),
        ended_at=now,
    )


def _answer(random: Random, conversation: Conversation, turn: int, documents: list[Document]) -> Answer:
    """Of ten one refuses, of fifty one failed, of twenty one repeats another."""
    fate, total_ms = random.random(), exp(6.8 + 0.6 * random.random())
    asked = conversation.created_at + turn * timedelta(minutes=2)
    status = Answer.Status.FAILED if fate < 0.02 else Answer.Status.STOPPED if fate < 0.03 else Answer.Status.COMPLETED
    return Answer(
        conversation=conversation,
        collection=conversation.collection,
        question=f"How does thing {random.randrange(5000)} work with {random.randbytes(16).hex()}?",
        status=status,
        refused=fate > 0.9,
        degraded=["vector"] if random.random() < 0.025 else [],
        text=random.randbytes(160).hex(),
        # Both wide enough to lie out of line, as those of real answers do.
        sources=[
            {"content": random.randbytes(480).hex(), "document": {"id": random.choice(documents).pk}},
            {"document": {"id": random.choice(documents).pk}},
        ],
        trace={"candidates": random.randbytes(1250).hex()},
        timings_ms={"repeated": 2, "total": 3}
        if 0.03 <= fate <= 0.08
        else {"first_token": total_ms * 0.6, "total": total_ms},
        search_method="zscore",
        generator="extractive",
        confidence=0.5,
        attempts=1,
        created_at=asked,
        completed_at=asked + timedelta(milliseconds=total_ms),
    )


def _mark_and_judge(random: Random, answers: list[Answer]) -> None:
    """Every seventh answer is marked, two of three as helpful; of a hundred scores one is an error."""
    marks, judgements, scores = [], [], []
    for answer in answers:
        assert answer.completed_at is not None
        if random.random() < 1 / 7:
            at = answer.completed_at + timedelta(minutes=1)
            marks.append(Feedback(answer=answer, helpful=random.random() < 0.67, created_at=at))
        for judge, (share, thresholds) in JUDGES.items():
            if answer.status != Answer.Status.COMPLETED or random.random() >= share:
                continue
            at = answer.completed_at + timedelta(seconds=5)
            judgement = Judgement(
                answer=answer, judge=judge, judge_name="made up", status=Judgement.Status.DONE, attempts=1,
                created_at=at, enqueued_at=at, finished_at=at,
            )  # fmt: skip
            judgements.append(judgement)
            for metric, threshold in thresholds.items():
                fails = random.random() < 0.01
                scores.append(
                    Score(
                        judgement=judgement,
                        metric=metric,
                        threshold=threshold,
                        score=None if fails else 1 - random.random() * random.random(),
                        error="The judge is away." if fails else "",
                        reason="Because the passages say so, or do not.",
                        details=[{"text": random.randbytes(240).hex()}],
                        created_at=at,
                    )
                )
    Feedback.objects.bulk_create(marks)
    Judgement.objects.bulk_create(judgements)
    Score.objects.bulk_create(scores)
