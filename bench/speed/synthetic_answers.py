"""Made-up answers with all that hangs on them, for timing what is reckoned over many of them.

Nothing in them means anything, but what time depends on is as in real ones: how wide the rows are and which of their
values lie out of line, how many scores, citations and marks an answer has, and that answers lie in the table in the
order in which they were asked. The same seed gives the same rows, except for their keys and for the time they end at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
from django.db import transaction
from django.utils import timezone

from bench.reporting import Report
from bench.speed.synthetic_answer_rows import SLUG, copy, remove, settle
from chat.models import Answer, Citation, Conversation, Feedback
from evaluation.exceptions import EvaluationError
from evaluation.experiments.exposures import arm_of
from evaluation.models import Experiment, Exposure, Judgement, Score
from evaluation.models.arms import Arm, pseudonym
from retrieval.models import Collection, Document, SearchProfile, SearchProfileVersion, Visibility
from retrieval.profile_settings import to_json
from retrieval.search import profiles

SEED = 90_000
DAYS = 90
ANSWERS_A_VISITOR = 2
# A document for so many answers; of five, one is never cited.
ANSWERS_A_DOCUMENT = 20

_OFFLINE: dict[Score.Metric, float | None] = {
    Score.Metric.GROUNDEDNESS: 0.5,
    Score.Metric.CITATION_SUPPORT: 0.8,
    Score.Metric.ANSWER_RELEVANCY: 0.3,
    Score.Metric.CONTEXTUAL_RELEVANCY: 0.3,
    Score.Metric.REFUSAL: None,
}
_MODEL: dict[Score.Metric, float | None] = {Score.Metric.FAITHFULNESS: 0.5, Score.Metric.ANSWER_RELEVANCY: 0.5}
_STATUSES = (Answer.Status.COMPLETED, Answer.Status.FAILED, Answer.Status.STOPPED)
_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class LoadedAnswers:
    """``experiment`` ran the whole time, and every visitor took part."""

    number: int
    collection: Collection
    experiment: Experiment
    build_seconds: float


def load(number: int, report: Report, *, seed: int = SEED) -> LoadedAnswers:
    """That many answers of the last 90 days, of a collection of their own or of all collections.

    All appear in one transaction. Raises: EvaluationError when an experiment runs, which they would disturb.
    """
    if Experiment.objects.filter(state=Experiment.State.RUNNING).exists():
        raise EvaluationError("An experiment is running: made-up answers would be counted among its own.")
    remove()
    started = time.perf_counter()
    with transaction.atomic():
        collection = Collection.objects.create(
            slug=SLUG,
            name="Benchmark of answers",
            description="Made up by `manage.py benchmark_dashboard`; can be deleted.",
            visibility=Visibility.STAFF,
        )
        experiment = _experiment()
        _Loading(number, collection, experiment, report, seed).run()
    settle()
    return LoadedAnswers(number, collection, experiment, time.perf_counter() - started)


def _experiment() -> Experiment:
    """As if it had just ended: only one may run, and what is timed reads one that ended today like a running one."""
    profile = SearchProfile.objects.create(slug=SLUG, name=SLUG)
    version = SearchProfileVersion.objects.create(
        profile=profile, number=1, settings=to_json(profiles.built_in_profile())
    )
    now = timezone.now()
    return Experiment.objects.create(
        name=SLUG,
        treatment=version,
        control_settings=to_json(profiles.built_in_profile()),
        salt=SLUG,
        state=Experiment.State.ENDED,
        started_at=now - timedelta(days=DAYS),
        ended_at=now,
    )


class _Loading:
    def __init__(self, number: int, collection: Collection, experiment: Experiment, report: Report, seed: int) -> None:
        self._number = number
        self._collection = collection
        self._experiment = experiment
        self._report = report
        self._random = np.random.default_rng([seed, number])
        assert experiment.started_at is not None
        self._since: datetime = experiment.started_at

    def run(self) -> None:
        documents = self._documents()
        conversations = self._conversations()
        answers = self._answers(conversations, documents)
        self._feedback(answers)
        self._citations(answers, documents)
        self._exposures(answers)
        self._judgements(answers, Judgement.Judge.OFFLINE, _OFFLINE, share=1.0)
        self._judgements(answers, Judgement.Judge.MODEL, _MODEL, share=0.1)

    def _documents(self) -> list[int]:
        copy(
            Document(
                collection=self._collection, title=f"Document {number}", source=f"{SLUG}-{number}", chunk_count=5,
                content_hash=f"{number:064x}", status=Document.Status.READY,
                created_at=self._since, updated_at=self._since,
            )
            for number in range(max(5, self._number // ANSWERS_A_DOCUMENT))
        )  # fmt: skip
        return list(Document.objects.filter(collection=self._collection).order_by("pk").values_list("pk", flat=True))

    def _conversations(self) -> list[Conversation]:
        """In the order in which they began; three of five ask the collection alone, the others all of them."""
        number = -(-self._number // ANSWERS_A_VISITOR)
        # The last one ends before now.
        minutes = np.sort(self._random.uniform(0, DAYS * 24 * 60 - 10, number))
        alone = self._random.random(number) < 0.6
        made = []
        for place in range(number):
            at = self._since + timedelta(minutes=float(minutes[place]))
            made.append(
                Conversation(
                    visitor=f"{SLUG}-{place}", title=SLUG, created_at=at, updated_at=at,
                    collection=self._collection if alone[place] else None,
                )
            )  # fmt: skip
        copy(made)
        return made

    def _answers(self, conversations: Sequence[Conversation], documents: Sequence[int]) -> list[Answer]:
        """Of ten one refuses, of fifty one failed, of twenty one repeats the one before it."""
        number = self._number
        draw = self._random.random((number, 5))
        totals = self._random.lognormal(np.log(900), 0.6, number)
        statuses = self._random.choice(len(_STATUSES), number, p=[0.97, 0.02, 0.01])
        treatment = self._experiment.treatment_id
        texts = self._texts(64)
        answers: list[Answer] = []

        def made() -> Iterator[Answer]:
            for place in range(number):
                conversation = conversations[place // ANSWERS_A_VISITOR]
                at = conversation.created_at + timedelta(minutes=2.0 * (place % ANSWERS_A_VISITOR))
                status = _STATUSES[statuses[place]]
                is_complete = status == Answer.Status.COMPLETED
                repeats = answers[-1] if answers and is_complete and draw[place, 0] < 0.05 else None
                timings = {"searched": 60.0, "first_token": round(totals[place] * 0.6, 2), "total": totals[place]}
                if repeats is not None:
                    timings = {"repeated": 2.0, "total": 3.0}
                arm = arm_of(self._experiment, conversation.subject)
                first, second, third = (texts[(place * step + 7) % len(texts)] for step in (1, 3, 5))
                answers.append(
                    Answer(
                        conversation=conversation,
                        question=f"How does thing {place % 5000} work with {first[:24]}?",
                        status=status,
                        text=second[:300],
                        refused=is_complete and bool(draw[place, 1] < 0.1),
                        search_method="adaptive",
                        degraded=["vector"] if draw[place, 2] < 0.025 else [],
                        generator="extractive",
                        confidence=float(draw[place, 3]),
                        statements=[{"text": first[:200]}],
                        profile_version_id=treatment if arm is Arm.TREATMENT else None,
                        cache_key=first[:64],
                        repeats=repeats,
                        # Both wide enough to lie out of line, as those of real answers do.
                        sources=[
                            {
                                "document": {"id": documents[(place * 7 + step) % len(documents)]},
                                "content": third[:1000],
                            }
                            for step in range(2)
                        ],
                        trace={"candidates": third},
                        timings_ms=timings if is_complete else {},
                        attempts=1,
                        created_at=at,
                        completed_at=at + timedelta(milliseconds=float(totals[place])),
                    )
                )
                if place % _BATCH == 0:
                    self._report("writing answers", place, number)
                yield answers[-1]

        copy(made())
        return answers

    def _feedback(self, answers: Sequence[Answer]) -> None:
        """Every seventh answer is marked, and two of three of those helped."""
        rated = self._random.random(len(answers)) < 1 / 7
        helped = self._random.random(len(answers)) < 2 / 3
        copy(
            Feedback(answer=answer, helpful=bool(helped[place]), created_at=at, updated_at=at)
            for place, answer in enumerate(answers)
            if rated[place]
            for at in [_finished(answer) + timedelta(minutes=1)]
        )

    def _citations(self, answers: Sequence[Answer], documents: Sequence[int]) -> None:
        cited = documents[: max(1, len(documents) * 4 // 5)]
        copy(
            Citation(
                answer=answer, marker=marker, marker_start=0, marker_end=3,
                document_id=cited[(place * 7 + marker) % len(cited)],
                document_title="Document", quote=answer.text[:160], start=0, end=160, support=0.9,
            )
            for place, answer in enumerate(answers)
            if answer.status == Answer.Status.COMPLETED and not answer.refused
            for marker in (1, 2)
        )  # fmt: skip

    def _exposures(self, answers: Sequence[Answer]) -> None:
        salt = self._experiment.salt
        copy(
            Exposure(
                experiment=self._experiment, answer=answer, subject=pseudonym(salt, answer.conversation.subject),
                arm=arm.value, created_at=_finished(answer),
            )
            for answer in answers
            if (arm := arm_of(self._experiment, answer.conversation.subject)) is not None
        )  # fmt: skip

    def _judgements(
        self, answers: Sequence[Answer], judge: Judgement.Judge, metrics: dict[Score.Metric, float | None], share: float
    ) -> None:
        """Of complete answers; of a hundred scores one is an error."""
        drawn = self._random.random(len(answers)) < share
        judged = {
            answer.pk: _finished(answer) + timedelta(seconds=5)
            for place, answer in enumerate(answers)
            if drawn[place] and answer.status == Answer.Status.COMPLETED
        }
        copy(
            Judgement(
                answer_id=answer, judge=judge, judge_name="made up", status=Judgement.Status.DONE, attempts=1,
                created_at=at, enqueued_at=at, finished_at=at,
            )
            for answer, at in judged.items()
        )  # fmt: skip
        written = Judgement.objects.filter(judge=judge, answer__conversation__title=SLUG).order_by("pk")
        rows: list[tuple[int, UUID]] = list(written.values_list("pk", "answer_id"))
        scores = self._random.beta(4, 1.5, (len(rows), len(metrics)))
        failed = self._random.random((len(rows), len(metrics))) < 0.01
        details = self._texts(64)

        def made() -> Iterator[Score]:
            for place, (pk, answer) in enumerate(rows):
                for column, (metric, threshold) in enumerate(metrics.items()):
                    is_error = failed[place, column]
                    yield Score(
                        judgement_id=pk, metric=metric, threshold=threshold,
                        score=None if is_error else float(scores[place, column]),
                        error="The judge is away." if is_error else "",
                        reason="Because the passages say so, or do not.",
                        details=[{"text": details[(place + column) % len(details)][:500]}],
                        milliseconds=1.0, created_at=judged[answer],
                    )  # fmt: skip
                if place % _BATCH == 0:
                    self._report(f"writing scores ({judge.label})", place, len(rows))

        copy(made())

    def _texts(self, number: int) -> list[str]:
        """Random digits, which do not shrink where they are stored."""
        return [self._random.bytes(1250).hex() for _ in range(number)]


def _finished(answer: Answer) -> datetime:
    assert answer.completed_at is not None
    return answer.completed_at
