"""The benchmark of the pages of figures, small: made-up answers, the pages, and nothing left behind."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from bench.speed import synthetic_answers
from bench.speed.synthetic_answers import SLUG
from chat.models import Answer, Conversation, Feedback
from evaluation.dashboard.dashboard_figures import activity, distributions
from evaluation.dashboard.scope import scope
from evaluation.experiments import report
from evaluation.models import Experiment, Score
from retrieval.models import Collection, Document, SearchProfile
from tests.support.judged_answers import completed_answer

pytestmark = pytest.mark.django_db


def quiet(_stage: str, _done: int, _total: int) -> None:
    pass


def test_everything_is_timed_and_nothing_is_left(tmp_path: Path) -> None:
    kept = completed_answer()
    page = tmp_path / "performance.md"
    page.write_text("# Speed\n\n<!-- dashboard -->\n<!-- /dashboard -->\n")
    out = StringIO()
    call_command("benchmark_dashboard", "--answers", "200", "--rounds", "1", "--json", "--write", str(page), stdout=out)
    told = json.loads(out.getvalue())
    assert told["answers"] == 200
    timed = {(one["kind"], one["name"]): one["p50_ms"] for one in told["timed"]}
    assert {kind for kind, _name in timed} == {"page", "part of the dashboard", "task"}
    assert min(timed.values()) > 0
    assert timed["page", "dashboard, 90 days"] > timed["part of the dashboard", "what came of the questions"]
    assert "| page | experiment |" in page.read_text()
    assert [answer.pk for answer in Answer.objects.all()] == [kept.pk]
    for model in (Collection, Document, Experiment, Feedback, Score, SearchProfile):
        assert not model.objects.exists(), model
    assert Conversation.objects.count() == 1


def test_made_up_answers_are_as_many_as_were_asked_for() -> None:
    first = synthetic_answers.load(300, quiet)
    days, total = activity(scope(90))
    assert total.asked == Answer.objects.count() == 300
    assert sum(day.asked for day in days.values()) == 300
    assert len([day for day in days.values() if day.asked]) > 60
    # Of a hundred answers one is stopped: of three hundred it may be none.
    assert min(total.refused, total.failed, total.degraded, total.helpful, total.unhelpful) > 0
    assert 0 < activity(scope(90, first.collection))[1].asked < 300
    assert {found.judge for found in distributions(scope(90))} == {"offline", "model"}
    assert Score.objects.filter(score=None).exists()
    assert Answer.objects.filter(completed_at__gt=timezone.now()).count() == 0
    told = report(first.experiment)
    arms = told.control, told.treatment
    assert sum(arm.visitors + arm.observed for arm in arms) == 150
    assert all(50 < arm.visitors + arm.observed < 100 for arm in arms)
    synthetic_answers.load(300, quiet)
    assert Answer.objects.count() == 300
    assert Collection.objects.filter(slug=SLUG).count() == 1


def test_made_up_answers_stay_away_from_a_running_experiment() -> None:
    loaded = synthetic_answers.load(10, quiet)
    Experiment.objects.filter(pk=loaded.experiment.pk).update(state="running", ended_at=None, name="Ours")
    with pytest.raises(CommandError, match="An experiment is running"):
        call_command("benchmark_dashboard", "--answers", "10", stdout=StringIO())
    assert Answer.objects.count() == 10
