"""A real worker and a real judge over HTTP: scores arrive by themselves, and kill -9 neither loses nor doubles any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

import pytest
from django.utils import timezone

from chat.models import Answer
from chat.signals import answer_completed
from evaluation.models import Judgement, JudgeUsage, Score
from retrieval.infrastructure.jobs import BEGUN_WITHIN, sweep
from tests.support.judge_server import JudgeServer, judge_server
from tests.support.judged_answers import completed_answer
from tests.support.site import Workers, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]

ALL = {
    "offline": ["answer_relevancy", "citation_support", "contextual_relevancy", "groundedness"],
    "model": ["answer_relevancy", "contextual_relevancy", "faithfulness"],
}


@pytest.fixture(scope="module")
def _judge() -> Iterator[JudgeServer]:
    with judge_server() as state:
        yield state


@pytest.fixture(scope="module")
def workers(django_db_setup: None, _judge: JudgeServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    started = Workers(
        tmp_path_factory.mktemp("workers"),
        JUDGE_BASE_URL=_judge.url,
        JUDGE_MODEL="tiny-judge",
        # Whatever the environment says, a worker's DeepEval is mute.
        DEEPEVAL_TELEMETRY_OPT_OUT="0",
    )
    yield started
    started.stop()


@pytest.fixture
def server(settings, _judge: JudgeServer) -> JudgeServer:
    """The judge of this process and of the workers, as new."""
    settings.JUDGE_BASE_URL, settings.JUDGE_MODEL, settings.EVALUATE_WITH_MODEL = _judge.url, "tiny-judge", True
    fresh = JudgeServer()
    for one in fields(fresh):
        if one.name not in ("url", "is_open"):
            setattr(_judge, one.name, getattr(fresh, one.name))
    return _judge


def is_done() -> bool:
    return set(Judgement.objects.values_list("status", flat=True)) == {Judgement.Status.DONE}


def metrics_of(judge: str) -> list[str]:
    return sorted(Score.objects.filter(judgement__judge=judge, score__isnull=False).values_list("metric", flat=True))


def time_passes() -> None:
    """The heart of a killed worker has stopped, and what is to be tried again is due."""
    long_ago = timezone.now() - 2 * Judgement.SILENT_AFTER
    Judgement.objects.filter(status="running").update(heartbeat_at=long_ago)
    Judgement.objects.filter(retry_at__isnull=False).update(retry_at=long_ago)
    Judgement.objects.update(created_at=long_ago)


def test_a_killed_worker_judges_nothing_twice_and_loses_nothing(queue, server, workers: Workers) -> None:
    server.wait_seconds = 0.5
    answers = [completed_answer() for _ in range(3)]
    worker = workers.running()
    for answer in answers:
        answer_completed.send(Answer, answer=answer)
    wait_until(lambda: "Statements" in server.forms, 60, f"the second metric\n{workers.log()}")
    worker.kill()
    interrupted = Judgement.objects.get(status="running")
    kept = interrupted.scores.get()
    assert kept.metric == "faithfulness"
    server.wait_seconds = 0.0
    assert sweep(Judgement) == 0, "its heart beat a moment ago"
    # Before another worker begins, whose heart beats; a message that the killed one had taken, and not begun with,
    # is sent again once it has waited long enough.
    time_passes()
    Judgement.objects.filter(lease=None).update(enqueued_at=timezone.now() - 2 * BEGUN_WITHIN)
    assert sweep(Judgement) >= 1
    workers.running()
    wait_until(is_done, 90, f"all judgements\n{workers.log()}")
    assert Judgement.objects.count() == 6
    counted = Counter(Score.objects.values_list("judgement__judge", "metric"))
    assert counted == {(judge, metric): 3 for judge, metrics in ALL.items() for metric in metrics}
    assert not Score.objects.exclude(error="").exists()
    assert list(Judgement.objects.filter(attempts__gt=1)) == [interrupted]
    assert interrupted.scores.get(metric="faithfulness").created_at == kept.created_at
    # What was judged is not paid for again; only the request that was under way at the kill is asked once more.
    assert (Counter(server.forms)["Claims"], Counter(server.forms)["Statements"]) == (3, 4)
    # All that was asked counts, but for the request that the kill cut off.
    assert JudgeUsage.objects.get().prompt_tokens in {100 * len(server.requests), 100 * (len(server.requests) - 1)}
