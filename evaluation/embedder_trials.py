"""Another embedder tried on this site, in the background, while the site searches with its own.

Its vectors are stored beside those in use, so that a worker that dies costs a batch of passages. Nothing that readers
see changes before an administrator agrees.
"""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from evaluation.exceptions import EvaluationError
from evaluation.models import EmbedderTrial, EvaluationQuestion, EvaluationRun, EvaluationSet, QuestionResult
from evaluation.runs.measurement import RunInput, SearchMeasurement, prepare_reranker
from evaluation.sets.resolution import measured_questions
from evaluation.statistics import mean_interval
from retrieval import conf
from retrieval.exceptions import ImproperEmbedder, LeaseLost, NotFitted, RetrievalError
from retrieval.index import closeness, reembedding
from retrieval.index.embedders.onnx import LocalEmbedder, OnnxEmbedder
from retrieval.infrastructure.jobs import acquire_lease, enqueue, enqueue_on_commit, heartbeat, is_due
from retrieval.infrastructure.record import tell
from retrieval.profile_settings import METHOD_WEIGHTS
from retrieval.search.profiles import NamedProfile, active_profile
from retrieval.types import RetrieverWeights, SearchFilters, SearchMethod

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

    from retrieval.protocols import TextEmbedder

logger = logging.getLogger(__name__)

Step = EmbedderTrial.Step


@dataclass(frozen=True, slots=True)
class KnownEmbedder:
    """An embedder that the page offers.

    ``file_megabytes``, ``memory_megabytes`` of a process, ``question_ms`` of processor time, ``passages_a_second`` of
    one core and ``first_right`` (the mean share over two public sets) were measured, see docs/models.md; None: they
    were not. ``query_prompt`` and the like are in ``options``.
    """

    key: str
    label: str
    languages: str | StrPromise
    licence: str
    options: Mapping[str, Any]
    dimension: int
    is_multilingual: bool
    file_megabytes: int
    memory_megabytes: int | None = None
    question_ms: int | None = None
    passages_a_second: float | None = None
    first_right: float | None = None


_MANY = _("about 100")
KNOWN = (
    KnownEmbedder(
        key="multilingual-e5-small",
        label="multilingual-e5-small",
        languages=_MANY,
        licence="MIT",
        options={"built_in": conf.MULTILINGUAL_E5},
        dimension=384,
        is_multilingual=True,
        file_megabytes=72,
        memory_megabytes=100,
        question_ms=5,
        passages_a_second=12,
        first_right=0.867,
    ),
    KnownEmbedder(
        key="embeddinggemma-300m",
        label="EmbeddingGemma 300M",
        languages=_MANY,
        licence="Gemma Terms of Use",
        options={
            "model": "onnx-community/embeddinggemma-300m-ONNX",
            "query_prompt": "task: search result | query: ",
            "document_prompt": "title: none | text: ",
        },
        dimension=768,
        is_multilingual=True,
        file_megabytes=310,
        memory_megabytes=690,
        question_ms=44,
        passages_a_second=2.9,
        first_right=0.935,
    ),
    KnownEmbedder(
        key="arctic-embed-m-v2.0",
        label="Snowflake Arctic Embed M 2.0",
        languages="74",
        licence="Apache-2.0",
        options={"model": "Snowflake/snowflake-arctic-embed-m-v2.0"},
        dimension=768,
        is_multilingual=True,
        file_megabytes=310,
    ),
    KnownEmbedder(
        key="all-mpnet-base-v2",
        label="all-mpnet-base-v2",
        languages=_("English"),
        licence="Apache-2.0",
        options={"model": "sentence-transformers/all-mpnet-base-v2"},
        dimension=768,
        is_multilingual=False,
        file_megabytes=110,
        memory_megabytes=210,
        question_ms=17,
        passages_a_second=4.1,
        first_right=0.863,
    ),
)
BY_KEY = {known.key: known for known in KNOWN}


def find_known(name: str) -> KnownEmbedder | None:
    """The known embedder of a folder or a name on the hub, by the last part of it; None for others."""
    last = name.rstrip("/").rpartition("/")[2].casefold()
    for known in KNOWN:
        if last in (known.key, str(known.options.get("model", "")).rpartition("/")[2].casefold()):
            return known
    return None


def options_of(name: str) -> dict[str, Any]:
    """The options of an embedder in a folder or on the hub; a known one's prompts are not in all of its exports."""
    known = find_known(name)
    return {**(known.options if known is not None and "model" in known.options else {}), "model": name}


# Vectors are stored in half precision; the index has them again, with the links of its graph.
BYTES_OF_LINKS = 950


def stored_bytes(passages: int, dimension: int) -> int:
    """How much the vectors of so many passages take in the database, with their index."""
    return passages * (2 * 2 * dimension + BYTES_OF_LINKS)


def request_trial(label: str, options: Mapping[str, Any]) -> EmbedderTrial:
    """Queue a trial for a worker. Raises: EvaluationError while another one is under way, or if the settings name an
    embedder."""
    if settings.EMBEDDER:
        raise EvaluationError(
            _t("The settings name this site's embedder: remove EMBEDDING_MODEL and EMBEDDING_BASE_URL first.")
        )
    try:
        with transaction.atomic():
            trial = EmbedderTrial.objects.create(label=label, options=dict(options))
            enqueue_on_commit(EmbedderTrial, [trial.pk])
            tell("embedder.tried", trial)
    except IntegrityError:
        raise EvaluationError(_t("Another embedder is being tried: wait until that is done, or cancel it.")) from None
    return trial


def request_switch(trial: EmbedderTrial) -> None:
    """Have a worker make the measured embedder the one that is searched. Raises: EvaluationError."""
    try:
        with transaction.atomic():
            values = {**EmbedderTrial.restart_values(), "with_switch": True, "finished_at": None}
            if not EmbedderTrial.objects.filter(pk=trial.pk, status=EmbedderTrial.Status.DONE).update(**values):
                raise EvaluationError(_t("%s has not been measured.") % trial)
            enqueue_on_commit(EmbedderTrial, [trial.pk])
            tell("embedder.switched", trial)
    except IntegrityError:
        raise EvaluationError(_t("Another embedder is being tried: wait until that is done, or cancel it.")) from None


def cancel(trial: EmbedderTrial) -> None:
    """End the trial; a worker that is at it stops at its next batch. Vectors that were made stay until discarded."""
    EmbedderTrial.unfinished().filter(pk=trial.pk).update(
        status=EmbedderTrial.Status.CANCELLED, lease=None, retry_at=None, finished_at=timezone.now()
    )


def discard_unused() -> int:
    """Delete the vectors of embedders that are not searched; returns how many embedders that were.

    Raises: EvaluationError during a trial.
    """
    if EmbedderTrial.unfinished().exists():
        raise EvaluationError(_t("Another embedder is being tried: wait until that is done, or cancel it."))
    EmbedderTrial.objects.filter(status=EmbedderTrial.Status.DONE).update(status=EmbedderTrial.Status.CANCELLED)
    return reembedding.drop_unused()


# What a worker does. After this time, before CELERY_TASK_TIME_LIMIT ends its task, it leaves the rest to the next one.
LONGEST_STINT_SECONDS = 10 * 60.0
_REPORT_SECONDS = 1.0


class _StintOver(Exception):
    """The rest is for the next worker."""


class _Progress:
    """Stores how far a trial is. Raises: LeaseLost when it was cancelled; _StintOver when the worker's time is over."""

    def __init__(self, trial: EmbedderTrial) -> None:
        self._trial, self._step = trial, Step(trial.step)
        self._ends_at = time.monotonic() + LONGEST_STINT_SECONDS
        self._stored_at = 0.0

    def begin(self, step: EmbedderTrial.Step, total: int = 0) -> None:
        self._step, self._stored_at = step, 0.0
        self(step, 0, total)

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._stored_at < _REPORT_SECONDS and done < total:
            return
        self._stored_at = now
        if not self._trial.write(step=self._step, done=done, total=total):
            raise LeaseLost(f"{self._trial.job_name} was cancelled.")
        if now > self._ends_at and self._step is not Step.SWITCH:
            raise _StintOver

    def downloaded(self, what: str, done: int, total: int) -> None:
        """As a call, from a thread of the hub's client: nothing is raised, and its connection is closed."""
        now = time.monotonic()
        if now - self._stored_at >= _REPORT_SECONDS:
            self._stored_at = now
            self._trial.write(step=Step.DOWNLOAD, done=done, total=total)
            connection.close()


def attempt(trial_id: int) -> EmbedderTrial | None:
    """The trial after an attempt; None when there was nothing to lease, or the lease was lost."""
    waiting = EmbedderTrial.unfinished().filter(is_due())
    trial = acquire_lease(waiting, trial_id, status=EmbedderTrial.RUNNING)
    if trial is None:
        return None
    try:
        with heartbeat(trial):
            _work(trial, _Progress(trial))
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except _StintOver:
        trial.hand_back("", timedelta())
        enqueue(EmbedderTrial, [trial.pk])
    except (ImproperEmbedder, ImproperlyConfigured) as error:
        trial.end(EmbedderTrial.FAILED, str(error))
    except (RetrievalError, EvaluationError) as error:
        trial.retry(str(error))
    except Exception as error:
        logger.exception("The embedder %s could not be tried.", trial)
        trial.retry(f"{type(error).__name__}: {error}")
    finally:
        # Hundreds of MiB that this process does not need before it is switched to.
        conf.forget_candidates()
    trial.refresh_from_db()
    return trial


def _work(trial: EmbedderTrial, progress: _Progress) -> None:
    was_at = Step(trial.step)
    candidate = _open(trial, progress)
    if trial.with_switch:
        progress.begin(Step.SWITCH)
        row = reembedding.encode_passages(candidate, progress, trial.options)
        reembedding.switch(row, candidate, progress)
        trial.end(EmbedderTrial.Status.SWITCHED)
        return
    progress.begin(Step.ENCODE)
    row = reembedding.encode_passages(candidate, progress, trial.options)
    trial.write(embedder=row)
    with conf.searching_with(candidate):
        if was_at is not Step.MEASURE:
            progress.begin(Step.FIT)
            trial.not_fitted = _fit_thresholds(trial, progress)
        progress.begin(Step.MEASURE)
    figures, weight = _measure(candidate, progress)
    if weight is not None and (fitted := closeness.stored_calibration(candidate.name)) is not None:
        closeness.store_calibration(candidate.name, replace(fitted, vector_weight=weight))
    trial.end(EmbedderTrial.Status.DONE, figures=figures, vector_weight=weight, not_fitted=trial.not_fitted)


def _open(trial: EmbedderTrial, progress: _Progress) -> TextEmbedder:
    """The candidate, downloaded and open. Raises: ImproperEmbedder, ImproperlyConfigured, EmbeddingFailed."""
    options = trial.options
    if "built_in" not in options:
        # It is found in the cache afterwards, by all processes.
        LocalEmbedder(cache_dir=settings.DATA_DIR / "models", report=progress.downloaded, **options)
    candidate = conf.chosen_embedder(options)
    candidate.prepare()
    if isinstance(candidate, OnnxEmbedder):
        # The other processors are the readers'.
        candidate.threads = 1
    return candidate


def _fit_thresholds(trial: EmbedderTrial, progress: _Progress) -> str:
    """Fit the candidate's thresholds, and return why they were not; empty if they were, or come with the site."""
    if conf.embedder().name in closeness.BUILT_IN:
        return ""
    known = find_known(trial.options["model"])
    try:
        closeness.fit_thresholds(progress, across_languages=known is not None and known.is_multilingual)
    except NotFitted as error:
        return str(error)
    return ""


# Weights of the vectors that are tried; the method's own is kept unless another one is this much better.
WEIGHTS, LEAST_GAIN = (0.5, 0.7, 0.8), 0.01
# With fewer questions no weight is chosen, and all questions judge.
FEWEST_TO_CHOOSE = 20

_Asked = list[tuple[EvaluationSet, list[EvaluationQuestion]]]


def _measure(candidate: TextEmbedder, progress: _Progress) -> tuple[list[dict[str, Any]], float | None]:
    """Return the figures of each evaluation set with both embedders, and the weight chosen for the candidate. With
    several sets, the last figures, without a name, cover all of them.

    The weight is chosen on every second question, and the others judge.
    """
    asked: _Asked = []
    for evaluation_set in EvaluationSet.objects.select_related("collection"):
        if questions := measured_questions(evaluation_set):
            asked.append((evaluation_set, questions))
    profile = active_profile()
    weight: float | None = None
    judging = asked
    total = sum(len(questions) for _, questions in asked)
    if (
        total >= FEWEST_TO_CHOOSE
        and candidate.name not in closeness.BUILT_IN
        and profile.settings.weights is None
        and profile.settings.method is SearchMethod.ZSCORE
    ):
        choosing = [(each, questions[::2]) for each, questions in asked]
        judging = [(each, questions[1::2]) for each, questions in asked if questions[1:]]
        with conf.searching_with(candidate):
            weight = _choose_weight(choosing, profile, progress)
    before = [_ask(each, questions, profile, progress) for each, questions in judging]
    with conf.searching_with(candidate):
        tuned = profile if weight is None else _weighted(profile, weight)
        after = [_ask(each, questions, tuned, progress) for each, questions in judging]
    names = [str(evaluation_set) for evaluation_set, _ in judging]
    if len(names) > 1:
        names.append("")
        before.append([result for results in before for result in results])
        after.append([result for results in after for result in results])
    return [_figures_of(*row) for row in zip(names, before, after, strict=True)], weight


def _choose_weight(choosing: _Asked, profile: NamedProfile, progress: _Progress) -> float:
    def mean_ndcg(weight: float) -> float:
        tuned = _weighted(profile, weight)
        return statistics.fmean(
            result.ndcg for each, questions in choosing for result in _ask(each, questions, tuned, progress)
        )

    own = METHOD_WEIGHTS[SearchMethod.ZSCORE].vector
    found = {weight: mean_ndcg(weight) for weight in (own, *WEIGHTS)}
    best = max(found, key=found.__getitem__)
    return best if found[best] >= found[own] + LEAST_GAIN else own


def _weighted(profile: NamedProfile, weight: float) -> NamedProfile:
    return replace(profile, settings=replace(profile.settings, weights=RetrieverWeights(weight, 1 - weight)))


def _ask(
    evaluation_set: EvaluationSet, questions: Sequence[EvaluationQuestion], profile: NamedProfile, progress: _Progress
) -> list[QuestionResult]:
    """The results of the questions, not saved. Raises: NotMeasured, Unmeasurable."""
    prepare_reranker(profile.settings.reranker)
    collection = evaluation_set.collection_id
    measurement = SearchMeasurement(
        RunInput(
            run=EvaluationRun(evaluation_set=evaluation_set, settings={}),
            profile=profile,
            collection_id=collection,
            filters=SearchFilters(collections=(collection,), readers=()),
            questions=questions,
        )
    )
    results = []
    for number, question in enumerate(questions, start=1):
        results.append(measurement.ask(question))
        progress("questions", number, len(questions))
    return results


def _figures_of(name: str, before: Sequence[QuestionResult], after: Sequence[QuestionResult]) -> dict[str, Any]:
    interval = mean_interval([second.ndcg - first.ndcg for first, second in zip(before, after, strict=True)])
    figures: dict[str, Any] = {"set": name, "questions": len(after)}
    for name, results in (("before", before), ("after", after)):
        figures[name] = {
            "ndcg": statistics.fmean(each.ndcg for each in results),
            "first": statistics.fmean(math.isclose(each.reciprocal_rank, 1) for each in results),
            "milliseconds": statistics.median(each.milliseconds for each in results),
        }
    return {**figures, "low": interval.low, "high": interval.high, "difference": interval.mean}
