"""From a finished answer to its judgement, with a real judge over HTTP: what is stored when it works and when not."""

import threading
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from chat.models import Answer
from chat.signals import answer_completed
from core import job_queue
from core.job_queue import enqueue_forgotten_jobs
from evaluation import conf, judgements
from evaluation.judgements import count_spent_tokens
from evaluation.models import Judgement, JudgeUsage, Score
from tests.support.judged_answers import OFFICE, PUMP, completed_answer
from tests.support.site import wait_until

pytestmark = pytest.mark.django_db

MODEL_METRICS = ["faithfulness", "answer_relevancy", "contextual_relevancy"]


@pytest.fixture
def judged():
    """``judged(answer, judge)``: the judgement after one attempt."""

    def _judged(answer, judge):
        (judgement,) = judgements.request_judgements(answer, judges=[judge])
        return judgements.judge_answer(judgement.pk) or Judgement.objects.get(pk=judgement.pk)

    return _judged


def scores_of(judgement):
    return dict(judgement.scores.values_list("metric", "score"))


def due(judgement):
    """Time passes until the next attempt."""
    Judgement.objects.filter(pk=judgement.pk).update(retry_at=timezone.now() - timedelta(seconds=1))


def test_a_finished_answer_is_judged_once_by_each_judge(judge, django_capture_on_commit_callbacks):
    answer = completed_answer()
    with django_capture_on_commit_callbacks(execute=True):
        answer_completed.send(Answer, answer=answer)
        answer_completed.send(Answer, answer=answer)
    judgements = Judgement.objects.filter(answer=answer)
    assert sorted(judgements.values_list("judge", "status")) == [("model", "queued"), ("offline", "queued")]
    assert all(judgement.enqueued_at for judgement in judgements)


def test_which_judges_are_planned(settings):
    assert judgements.choose_judges(completed_answer()) == ["offline"]
    settings.EVALUATE_WITH_MODEL = True
    first = completed_answer()
    assert judgements.choose_judges(first) == ["offline", "model"]
    assert judgements.choose_judges(completed_answer(repeats=first)) == ["offline"], "it is not paid for again"


def test_the_sample_is_a_share_of_all_answers_and_always_the_same(settings):
    ids = [Answer().pk for _ in range(2000)]
    sampled = {}
    for rate in (0.0, 0.25, 0.5, 1.0):
        settings.JUDGE_SAMPLE_RATE = rate
        sampled[rate] = {pk for pk in ids if conf.is_sampled(pk)}
    assert 400 < len(sampled[0.25]) < 600
    assert set() == sampled[0.0] < sampled[0.25] < sampled[0.5] < sampled[1.0] == set(ids)


def test_rules_score_a_good_answer_high_another_low_and_always_alike(judged):
    first, second = (judged(completed_answer(), "offline") for _ in range(2))
    assert first.status == Judgement.Status.DONE
    good = scores_of(first)
    assert good == scores_of(second)
    assert set(good) == {"groundedness", "citation_support", "answer_relevancy", "contextual_relevancy"}
    assert good["groundedness"] > 0.9
    assert good["citation_support"] == 1.0
    assert not any(score.is_low for score in first.scores.all())
    bad = judged(completed_answer("The office in Ghent opens at nine [1].", contents=(OFFICE,)), "offline")
    for metric in ("answer_relevancy", "contextual_relevancy"):
        assert scores_of(bad)[metric] < 0.3 < good[metric]
    assert bad.scores.get(metric="answer_relevancy").is_low


def test_only_what_says_something_of_the_answer_is_measured(judged, judge):
    computed = completed_answer("There are 3 rows, of 5 in the table.", generator="extractive")
    assert set(scores_of(judged(computed, "offline"))) == {"answer_relevancy", "contextual_relevancy"}
    assert set(scores_of(judged(computed, "model"))) == set(MODEL_METRICS) - {"faithfulness"}
    refusal = completed_answer("The documents do not say.", refused=True)
    assert set(scores_of(judged(refusal, "offline"))) == {"contextual_relevancy"}
    bare = judged(completed_answer("The documents do not say.", refused=True, contents=()), "offline")
    assert (bare.status, scores_of(bare)) == (Judgement.Status.SKIPPED, {})


def test_a_sentence_that_no_passage_bears_out_is_named(judged):
    judgement = judged(
        completed_answer("The pump weighs 3450 grams [1]. It was built in **1987** by Siemens [1]."), "offline"
    )
    grounded = judgement.scores.get(metric="groundedness")
    assert grounded.is_low
    assert "1 of 2 sentences" in grounded.reason
    # Words for people: no Markdown, no markers, no codes of reasons.
    assert "“It was built in 1987 by Siemens .” (a number in it is not in the source" in grounded.reason
    assert [detail["supported"] for detail in grounded.details] == [True, False]
    assert judgement.scores.get(metric="citation_support").score == 0.5


def test_citations_must_be_there_and_point_at_the_passage_that_says_so(judged):
    uncited = judged(completed_answer("The pump weighs 3450 grams."), "offline").scores.get(metric="citation_support")
    assert uncited.score == 0.0
    assert "1 cite none" in uncited.reason
    answer = completed_answer("The office in Ghent opens at nine [1].", contents=(PUMP, OFFICE))
    wrong = judged(answer, "offline").scores.get(metric="citation_support")
    assert wrong.score == 0.0
    assert wrong.details[0]["supported"] is False


def test_without_the_embedder_there_is_an_error_and_no_score(judged, settings):
    settings.EMBEDDER = {
        "BACKEND": "retrieval.index.embedders.openai.OpenAICompatibleEmbedder",
        "OPTIONS": {"base_url": "http://127.0.0.1:9/v1", "api_key": "", "model": "m", "dimension": 8},
    }
    judgement = judged(completed_answer(), "offline")
    assert judgement.status == Judgement.Status.QUEUED
    assert "embedder does not answer" in judgement.error
    assert not judgement.scores.filter(score__isnull=False).exists()


def test_an_answer_in_another_language_than_its_passages_is_no_score(judged):
    text = "De pomp heeft een gewicht dat ongeveer gelijk is aan dat van een grote en zware hond [1]."
    passage = "The pump is one of the heaviest that we have ever made for our customers in this part of the world."
    judgement = judged(completed_answer(text, contents=(passage,)), "offline")
    assert (judgement.status, judgement.attempts) == (Judgement.Status.FAILED, 1)
    grounded = judgement.scores.get(metric="groundedness")
    assert grounded.score is None
    assert "another language" in grounded.error
    assert scores_of(judgement)["contextual_relevancy"] is not None


def test_the_model_scores_and_its_tokens_are_counted(judge, judged):
    judgement = judged(completed_answer(), "model")
    assert (judgement.status, judgement.judge_name) == (Judgement.Status.DONE, "tiny-judge")
    assert scores_of(judgement) == {"faithfulness": 0.5, "answer_relevancy": 1.0, "contextual_relevancy": 1.0}
    requests = len(judge.requests)
    assert (judgement.prompt_tokens, judgement.completion_tokens) == (100 * requests, 10 * requests)
    assert count_spent_tokens() == 110 * requests


def test_nonsense_on_one_metric_leaves_the_others_and_is_asked_again_alone(judge, judged):
    judge.judged["Claims"] = {"claims": []}
    judgement = judged(completed_answer(), "model")
    assert judgement.status == Judgement.Status.QUEUED
    assert judgement.error == "faithfulness: The judge named no claims, so there is nothing to score."
    assert scores_of(judgement) == {"faithfulness": None, "answer_relevancy": 1.0, "contextual_relevancy": 1.0}
    asked = len(judge.requests)
    del judge.judged["Claims"]
    due(judgement)
    judgement = judgements.judge_answer(judgement.pk)
    assert judgement.status == Judgement.Status.DONE
    assert set(judge.forms[asked:]) == {"Truths", "Claims", "FaithfulnessVerdict", "FaithfulnessScoreReason"}


def test_a_spent_budget_stops_before_the_next_request_and_keeps_what_was_measured(judge, judged, settings):
    settings.JUDGE_DAILY_BUDGET_TOKENS = 5 * 110
    judgement = judged(completed_answer(), "model")
    assert judgement.status == Judgement.Status.SKIPPED
    assert judgement.error == "The day's budget of 550 tokens for judging is spent."
    assert scores_of(judgement) == {"faithfulness": 0.5}
    assert len(judge.requests) == 5
    other = judged(completed_answer(), "model")
    assert (other.status, other.scores.count()) == (Judgement.Status.SKIPPED, 0)
    assert len(judge.requests) == 5
    JudgeUsage.objects.update(day=timezone.localdate() - timedelta(days=1))
    assert judgements.requeue_judgements(Judgement.objects.filter(pk=other.pk)) == 1
    assert judgements.judge_answer(other.pk).scores.exists(), "tomorrow there are tokens again"


def test_a_missing_judge_and_an_unforeseen_error_are_stored_with_their_reason(judged, monkeypatch):
    judgement = judged(completed_answer(), "model")
    assert judgement.error == "No judge is configured: set JUDGE_BASE_URL and JUDGE_MODEL."
    assert not judgement.scores.exists()

    def broken(*_):
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(judgements, "build_judgement_case", broken)
    judgement = judged(completed_answer(), "model")
    assert (judgement.status, judgement.error) == (Judgement.Status.QUEUED, "ZeroDivisionError: unforeseen")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("free_requests", [0, 3], ids=["before a metric is done", "at the end of a metric"])
def test_a_judgement_asked_for_again_takes_nothing_from_the_worker_that_was_busy_with_it(judge, free_requests):
    judge.free_requests = free_requests
    judge.is_open.clear()
    (judgement,) = judgements.request_judgements(completed_answer(), judges=["model"])

    def work():
        try:
            judgements.judge_answer(judgement.pk)
        finally:
            connection.close()

    busy = threading.Thread(target=work)
    busy.start()
    wait_until(lambda: len(judge.requests) > free_requests, 60, "the request that is held")
    assert judgements.judge_answer(judgement.pk) is None, "one worker at a time"
    judgements.requeue_judgements(Judgement.objects.filter(pk=judgement.pk))
    judge.is_open.set()
    busy.join(20)
    judgement.refresh_from_db()
    assert (judgement.status, judgement.attempts, judgement.error) == (Judgement.Status.QUEUED, 0, "")
    assert not judgement.scores.exists()
    assert len(judge.requests) == free_requests + 1, "without its lease it pays for nothing more"
    assert judgements.judge_answer(judgement.pk).status == Judgement.Status.DONE


def test_an_answer_whose_web_process_died_is_found(judge):
    now = timezone.now()
    forgotten = completed_answer(completed_at=now - timedelta(minutes=10))
    judgements.request_judgements(completed_answer(completed_at=now - timedelta(minutes=10)), judges=["offline"])
    completed_answer(completed_at=now)
    completed_answer(completed_at=now - timedelta(days=3))
    completed_answer(completed_at=now - timedelta(minutes=10), status=Answer.Status.STOPPED)
    assert judgements.request_missing_judgements() == 1
    assert Judgement.objects.filter(answer=forgotten).count() == 2
    assert judgements.request_missing_judgements() == 0


def test_a_judgement_that_failed_before_it_was_marked_as_sent_is_tried_again_when_it_is_due(settings, monkeypatch):
    settings.JUDGE_BASE_URL = "http://127.0.0.1:9/v1"
    judgement = Judgement.objects.create(answer=completed_answer(), judge="model")
    # The worker is faster than the process that sent the task.
    monkeypatch.setattr(job_queue, "send_job", lambda _task, pk: judgements.judge_answer(pk))
    job_queue.enqueue(Judgement, [judgement.pk])
    judgement.refresh_from_db()
    assert (judgement.status, judgement.attempts) == ("queued", 1)
    told = []
    monkeypatch.setattr(job_queue, "send_job", lambda _task, pk: told.append(pk))
    long_ago = timezone.now() - timedelta(minutes=1)
    Judgement.objects.update(retry_at=timezone.now() - timedelta(seconds=1), created_at=long_ago)
    assert enqueue_forgotten_jobs(Judgement) == 1
    assert told == [judgement.pk]


def test_the_table_itself_refuses_what_is_no_score():
    (judgement,) = judgements.request_judgements(completed_answer(), judges=["offline"])
    for value, error in ((float("nan"), ""), (1.01, ""), (-0.01, ""), (None, ""), (0.5, "The judge was away.")):
        with pytest.raises(IntegrityError), transaction.atomic():
            Score.objects.create(judgement=judgement, metric="groundedness", score=value, error=error)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"JUDGE_BASE_URL": "http://judge/v1"}, ["evaluation.E001"]),
        ({"JUDGE_BASE_URL": "judge", "JUDGE_MODEL": "m"}, ["evaluation.E001"]),
        ({"JUDGE_SAMPLE_RATE": 1.5}, ["evaluation.E002"]),
        ({"JUDGE_DAILY_BUDGET_TOKENS": -1}, ["evaluation.E003"]),
        ({}, []),
    ],
)
def test_a_judge_that_is_half_described_is_found_at_start(settings, changed, found):
    for name, value in changed.items():
        setattr(settings, name, value)
    assert [one.id for one in (*conf.check_judge_settings(), *conf.check_judge_limits())] == found
