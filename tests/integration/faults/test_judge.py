"""A judge that errs, hangs, is slow, sends garbage or dies: an error is stored and shown, never a score."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from evaluation import judgements
from evaluation.models import Judgement, Score
from ragsite.operations.health_views import JUDGEMENTS, _update_database_metrics
from tests.support.faults import FAULTS
from tests.support.judged_answers import completed_answer

pytestmark = pytest.mark.django_db

SENTENCES = {
    "error": "HTTP 503",
    "hang": "was not done within its time",
    "garbage": "is not a chat completion",
    "nested garbage": "is not a chat completion",
    "dies": "line to the model broke",
}


def break_it(judge, settings, fault):
    judge.status, judge.wait_seconds, judge.raw, judge.breaks_off = 200, 0.0, None, False
    judge.is_open.set()
    settings.JUDGE_TIMEOUT_SECONDS = 0.3 if fault == "hang" else 20.0
    match fault:
        case "error":
            judge.status = 503
        case "hang":
            judge.is_open.clear()
        case "slow":
            judge.wait_seconds = 0.1
        case "garbage":
            judge.raw = b"<html>"
        case "nested garbage":
            judge.raw = b"[" * 100_000
        case "dies":
            judge.breaks_off = True


def scores_page(admin, answer):
    return admin.get(reverse("chat:debug_scores", args=[answer.pk])).content.decode()


def counted(status):
    _update_database_metrics()
    return JUDGEMENTS.labels(judge="model", status=status)._value.get()


@pytest.mark.parametrize("fault", [*FAULTS, "nested garbage"])
def test_a_broken_judge_is_an_error_until_it_is_whole_again(judge, settings, admin_client, fault):
    break_it(judge, settings, fault)
    answer = completed_answer()
    (judgement,) = judgements.request_judgements(answer, judges=["model"])
    judgements.judge_answer(judgement.pk)
    judgement.refresh_from_db()
    if fault != "slow":
        assert judgement.status == Judgement.Status.QUEUED
        assert SENTENCES[fault] in judgement.error
        assert not Score.objects.filter(score__isnull=False).exists()
        assert SENTENCES[fault] in scores_page(admin_client, answer)
        assert counted(Judgement.Status.QUEUED) == 1
        break_it(judge, settings, "")
        Judgement.objects.update(retry_at=timezone.now() - timedelta(seconds=1))
        judgements.judge_answer(judgement.pk)
        judgement.refresh_from_db()
    assert (judgement.status, judgement.error) == (Judgement.Status.DONE, "")
    assert judgement.scores.get(metric="faithfulness").score == 0.5
    assert "0.50" in scores_page(admin_client, answer)
    assert counted(Judgement.Status.DONE) == 1
