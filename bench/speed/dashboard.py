"""Timing the pages of figures, and the scheduled tasks that look through all answers, at a size that was chosen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from django.contrib.auth import get_user_model
from django.test import RequestFactory
from django.urls import resolve, reverse

from bench.reporting import Report
from bench.speed.synthetic_answers import DAYS, LoadedAnswers
from evaluation import judgements
from evaluation.dashboard.dashboard_figures import activity, distributions
from evaluation.dashboard.gaps import unanswered
from evaluation.dashboard.scope import low_groundedness, scope
from evaluation.exceptions import UntrustworthyRun
from evaluation.experiments import report as experiment_report
from evaluation.models import Judgement
from evaluation.statistics import Percentiles, percentiles
from retrieval.infrastructure.jobs import sweep

PAGES, PARTS, TASKS = "page", "part of the dashboard", "task"


@dataclass(slots=True)
class DashboardRun:
    """Milliseconds of each thing timed, by its kind and name, in the order in which it is shown."""

    answers: int
    build_seconds: float
    milliseconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def percentiles(self) -> dict[tuple[str, str], Percentiles]:
        return {timed: percentiles(taken) for timed, taken in self.milliseconds.items()}


def run(loaded: LoadedAnswers, rounds: int, report: Report) -> DashboardRun:
    """Everything timed so many times, after a time that is not counted; what is timed takes turns.

    Raises: UntrustworthyRun when a page does not show.
    """
    result = DashboardRun(loaded.number, loaded.build_seconds)
    timed = _timed(loaded)
    for number in range(rounds + 1):
        for place, (name, work) in enumerate(timed.items()):
            report("timing", number * len(timed) + place, (rounds + 1) * len(timed))
            started = time.perf_counter()
            work()
            if number:
                result.milliseconds.setdefault(name, []).append((time.perf_counter() - started) * 1000)
    return result


def _timed(loaded: LoadedAnswers) -> dict[tuple[str, str], Callable[[], object]]:
    long, of_collection = scope(DAYS), scope(DAYS, loaded.collection)
    short = scope(7)
    pages = {
        "dashboard, 7 days": short.address(),
        "dashboard, 30 days": scope(30).address(),
        "dashboard, 90 days": long.address(),
        "dashboard, 90 days, one collection": of_collection.address(),
        "list of answers": reverse("admin:chat_answer_changelist"),
        "answers that did not help, 90 days": long.answer_list(feedback__helpful__exact=0),
        "answers of low groundedness, 90 days": long.low_score_list("groundedness", Judgement.Judge.OFFLINE),
        "experiment": reverse("admin:evaluation_experiment_change", args=[loaded.experiment.pk]),
    }
    parts: dict[str, Callable[[], object]] = {
        "what came of the questions": lambda: activity(long),
        "distributions of scores": lambda: distributions(long),
        "distributions of scores, one collection": lambda: distributions(of_collection),
        "worst scores": lambda: list(low_groundedness(long)[:5]),
        "unanswered questions": lambda: unanswered(long),
        "report of the experiment": lambda: experiment_report(loaded.experiment),
    }
    tasks: dict[str, Callable[[], object]] = {
        "judgements that wait": partial(sweep, Judgement),
        "answers without a judgement": judgements.request_forgotten,
    }
    return {
        **{(PAGES, name): partial(_show, address) for name, address in pages.items()},
        **{(PARTS, name): work for name, work in parts.items()},
        **{(TASKS, name): work for name, work in tasks.items()},
    }


def _show(address: str) -> None:
    """The page as an admin gets it, by a request that no server hands over and an account that is never saved."""
    request = RequestFactory().get(address)
    request.user = get_user_model()(is_active=True, is_staff=True, is_superuser=True)
    request.session = {}  # type: ignore[assignment]  # what the pages put there ends with the request
    view = resolve(request.path)
    response = view.func(request, *view.args, **view.kwargs)
    if hasattr(response, "render"):
        response.render()
    if response.status_code != 200:
        raise UntrustworthyRun(f"{address} answered with {response.status_code}.")
