"""Answers runs: every question is asked as a visitor asks it, and compared with the expected answer."""

import json
from dataclasses import replace

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, transaction
from django.utils import timezone

from chat.answering.prompts import PROMPT_VERSION
from evaluation import gates
from evaluation.gates import Verdict
from evaluation.judgements import count_spent_tokens
from evaluation.models import AnswerResult, EvaluationQuestion, EvaluationRun, GatePolicy, JudgeUsage
from evaluation.models.evaluation_set import build_runnable_condition
from evaluation.runs import measurement, queue, run_execution
from evaluation.runs.results import compare_runs, read_confidence_interval
from evaluation.sets.building import add_expected_passage
from evaluation.sets.resolution import hash_questions, list_measured_questions
from retrieval.models import Chunk
from retrieval.search.profiles import profiles
from retrieval.search.profiles.profiles import NamedProfile
from retrieval.types import SearchFilters
from tests.support.evaluation_sets import ANSWERS, BY_MEANING, BY_WORDS, MEANING, answered, set_of, version_of

pytestmark = pytest.mark.django_db(transaction=True)

# No score reaches the threshold, so no passage is found and every question is refused.
BLIND = NamedProfile("blind", replace(BY_WORDS, score_threshold=1000))
PUMP, VALVE, HOURS, FOOTBALL = ANSWERS


@pytest.fixture
def model(model, settings):
    model.pieces = ["It weighs 3450 ", "grams [", "1]."]
    model.usage = {"prompt_tokens": 100, "completion_tokens": 10}
    settings.OPENAI_PRICE_PROMPT, settings.OPENAI_PRICE_COMPLETION = 2.0, 8.0
    return model


def add_questions(evaluation_set):
    """Enough, with a passage and an answer each, for a loss on all of them to be beyond chance."""
    for number in range(6):
        text = f"How many grams does circulation pump number {number} weigh?"
        question = EvaluationQuestion.objects.create(
            evaluation_set=evaluation_set, text=text, expected_answer="3450 grams"
        )
        add_expected_passage(question, Chunk.objects.get(document__source="pump.md"))


def test_each_question_is_answered_and_held_against_what_is_expected(answers):
    run = answered(answers)
    assert (run.status, run.asked, run.total, run.error, run.unreliable_reason) == ("done", 4, 4, "", "")
    pump, valve, hours, football = run.answer_results.all()
    assert (pump.agreement, pump.refusal, pump.refused) == (1, 1, False)
    assert "3450 grams" in pump.answer
    assert pump.citations[0]["source"] == "pump.md"
    assert "3450" in pump.citations[0]["quote"]
    assert pump.groundedness is None, "it quotes"
    assert valve.agreement == 1
    assert hours.agreement < 0.7, "it opens at eight, not at half past ten"
    assert hours.refusal == 1
    assert (football.refused, football.agreement, football.refusal) == (True, 1, 1)
    assert football.groundedness is None
    assert all(result.milliseconds > 0 for result in (pump, valve, hours, football))
    assert pump.first_token_milliseconds <= pump.milliseconds


def test_an_answer_is_held_against_what_it_must_hold_and_must_not(answers):
    pump = answers.questions.get(text=PUMP)
    answers.questions.exclude(pk=pump.pk).delete()
    answers.questions.update(expected_answer="", must=["3450 grams|3450 g", "pump"], must_not=["valve"], longest=5000)
    met = answered(answers)
    (result,) = met.answer_results.all()
    assert result.agreement is None
    assert (result.expectations, result.unmet) == (1.0, {})
    assert read_confidence_interval(met, "expectations").mean == 1.0
    assert read_confidence_interval(met, "agreement") is None

    answers.questions.update(must=["3450 grams", "11 stages", "a warranty"], must_not=["grams"], longest=10)
    unmet = answered(answers)
    assert unmet.fingerprint != met.fingerprint
    (result,) = unmet.answer_results.all()
    assert result.expectations == 0.0
    assert result.unmet["missing"] == ["11 stages", "a warranty"]
    assert result.unmet["forbidden"] == ["grams"]
    assert result.unmet["too_long"] > 0
    # The document that it should cite is worth a point.
    add_expected_passage(pump, Chunk.objects.get(document__source="pump.md"))
    assert answered(answers).answer_results.get().expectations == pytest.approx(1 / 3)


def test_the_profile_of_the_run_is_searched_and_not_the_one_in_force(answers):
    blind, seeing = answered(answers, BLIND), answered(answers)
    results = {result.text: result for result in blind.answer_results.all()}
    assert all(result.refused for result in results.values())
    assert [results[text].agreement for text in ANSWERS] == [0, 0, 0, 1]
    assert [results[text].refusal for text in ANSWERS] == [0, 0, 0, 1]
    # Means and comparisons are over the questions that have a value.
    assert {name: one["questions"] for name, one in blind.summary["metrics"].items()} == {"agreement": 4, "refusal": 4}
    assert read_confidence_interval(blind, "agreement").mean == 0.25
    compared = compare_runs(seeing, blind)
    assert compared.metric == "agreement"
    assert [pair.text for pair in compared.better][:2] == [PUMP, VALVE]
    assert (compared.questions, compared.same, compared.worse) == (4, 1, ())
    assert "groundedness" not in compared.differences


def test_questions_without_an_expected_answer_are_not_asked(answers, library):
    EvaluationQuestion.objects.create(evaluation_set=answers, text="A draft")
    only_passage = EvaluationQuestion.objects.create(evaluation_set=answers, text="Where is the pump?")
    add_expected_passage(only_passage, Chunk.objects.get(document__source="pump.md"))
    assert list(answers.questions.exclude(build_runnable_condition()).values_list("text", flat=True)) == ["A draft"]
    assert [one.text for one in list_measured_questions(answers, "answers")] == list(ANSWERS)
    assert [one.text for one in list_measured_questions(answers, "search")] == ["Where is the pump?"]
    assert answered(answers).asked == 4
    empty = answered(set_of(library, "passages"))
    assert (empty.status, empty.attempts) == ("failed", 1)
    assert "has an expected answer, or words that an answer must contain, or expects a refusal" in empty.error


def test_search_runs_and_answers_runs_are_told_apart(answers):
    search, run = (queue.request_evaluation_run(answers, MEANING, kind=kind) for kind in ("search", "answers"))
    assert search != run
    assert queue.request_evaluation_run(answers, MEANING, kind="answers") == run
    before = {kind: hash_questions(list_measured_questions(answers, kind), kind) for kind in ("search", "answers")}
    question = answers.questions.get(text=PUMP)
    add_expected_passage(question, Chunk.objects.get(document__source="pump.md"))
    assert hash_questions(list_measured_questions(answers, "answers"), "answers") == before["answers"]
    assert hash_questions(list_measured_questions(answers)) != before["search"]
    question.expected_answer = "4 kilos"
    question.save()
    assert hash_questions(list_measured_questions(answers, "answers"), "answers") != before["answers"]
    with pytest.raises(IntegrityError), transaction.atomic():
        answers.questions.filter(text=PUMP).update(expects_refusal=True)


def test_what_the_model_was_and_took_is_on_the_run(answers, model, settings):
    run = answered(answers)
    assert run.conditions["generator"] == "tiny"
    assert run.conditions["prompt_version"] == PROMPT_VERSION
    asked = len(model.requests)
    assert run.summary["usage"] == {
        "prompt_tokens": 100 * asked, "completion_tokens": 10 * asked, "cost": pytest.approx(0.00028 * asked),
    }  # fmt: skip
    pump = run.answer_results.get(text=PUMP)
    assert (pump.answer, pump.generator, pump.agreement) == ("It weighs 3450 grams [1].", "tiny", 1)
    assert pump.groundedness == 1
    # The model's statement about the valve is wrong, so it is marked.
    assert run.answer_results.get(text=VALVE).agreement < 0.7
    settings.OPENAI_BASE_URL = settings.OPENAI_MODEL = ""
    assert compare_runs(answered(answers), run).caveats == (
        "The answers were written by tiny before, and by extractive after.",
    )


def test_a_model_that_fails_makes_the_run_unreliable_and_its_stand_in_is_named(answers, model):
    model.statuses = [500] * 3  # the first question, with every attempt
    run = answered(answers)
    assert run.status == "done"
    assert not run.is_reliable
    assert run.unreliable_reason.startswith("1 of 4 questions were not answered by tiny but by extractive")
    pump = run.answer_results.get(text=PUMP)
    assert (pump.is_fallback, pump.generator) == (True, "extractive")
    assert "did not answer" in pump.notice
    assert not run.answer_results.get(text=VALVE).is_fallback


def test_a_long_run_is_handed_on_before_its_workers_time_is_up(answers, monkeypatch):
    monkeypatch.setattr(run_execution, "LONGEST_STINT_SECONDS", -1)
    run = queue.request_evaluation_run(answers, MEANING, kind="answers")
    run_execution.measure_run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.asked, run.attempts, run.lease, run.error) == ("queued", 0, 0, None, "")
    assert run.enqueued_at is not None, "the next worker was told"
    monkeypatch.undo()
    run_execution.measure_run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.asked, run.attempts) == ("done", 4, 1)


def test_a_gate_counts_runs_of_the_kind_that_it_asks_for(answers):
    add_questions(answers)
    profiles.publish_profile(version_of(BY_MEANING))
    version = version_of(BLIND.settings)
    policy = GatePolicy.objects.create(evaluation_set=answers, metric="ndcg@10")
    in_force, wanted = profiles.active_profile(), profiles.build_named_profile(version)
    for profile in (in_force, wanted):
        answered(answers, profile)
    queued = [queue.request_evaluation_run(answers, profile, kind="answers") for profile in (in_force, wanted)]
    assert gates.check_gate(policy, version).verdict is Verdict.NOT_MEASURED, "these are answers, not searches"
    queue.cancel_runs(EvaluationRun.objects.filter(pk__in=[run.pk for run in queued]))
    policy.metric = "agreement"
    policy.save()
    checked = gates.check_gate(policy, version)
    assert checked.verdict is Verdict.WORSE, "it answers nothing"
    assert "agreement of the answers -0" in gates.describe_gate_check(checked)
    AnswerResult.objects.filter(run=checked.in_force.run).exclude(text=PUMP).update(agreement=0)
    assert gates.check_gate(policy, version).verdict is Verdict.PASSED, "one of ten questions is not significant"
    EvaluationQuestion.objects.create(evaluation_set=answers, text="Who won?", expects_refusal=True)
    assert gates.check_gate(policy, version).verdict is Verdict.NOT_MEASURED
    assert [run.kind for run in gates.request_runs(policy, version)] == ["answers", "answers"]


def test_a_gate_does_not_pass_what_no_question_expects(answers):
    answers.questions.filter(expects_refusal=True).delete()
    answers.questions.update(expected_answer="", must=["3450 grams"])
    profiles.publish_profile(version_of(BY_MEANING))
    version = version_of(BLIND.settings)
    policy = GatePolicy.objects.create(evaluation_set=answers, metric="agreement")
    for profile in (profiles.active_profile(), profiles.build_named_profile(version)):
        answered(answers, profile)
    checked = gates.check_gate(policy, version)
    assert (checked.verdict, checked.is_objection) == (Verdict.EMPTY, True)
    assert "agreement of the answers" in gates.describe_gate_check(checked)
    policy.metric = "expectations"
    policy.save()
    assert gates.check_gate(policy, version).comparison.difference.mean < 0


def test_each_answer_is_judged_with_the_expected_one_as_reference(answers, model, judge):
    answers.questions.exclude(text=PUMP).delete()
    filters = SearchFilters(collections=(answers.collection_id,))
    sources = async_to_sync(measurement.measure_reply)(PUMP, filters, MEANING).searched.sources
    judge.judged["ContextualPrecisionVerdict"] = {"verdicts": [{"verdict": "yes", "reason": "r"}] * len(sources)}
    judge.judged["Claims"] = {"claims": []}
    run = answered(answers)
    (result,) = run.answer_results.all()
    assert (result.judge, result.judge_error) == ("tiny-judge", "")
    assert set(result.judged) == {
        "faithfulness", "answer_relevancy", "contextual_relevancy", "contextual_precision", "contextual_recall",
    }  # fmt: skip
    assert result.judged["contextual_recall"]["score"] == 1
    # An unusable judgement is an error and no number.
    assert set(result.judged["faithfulness"]) == {"error"}
    assert "named no claims" in result.judged["faithfulness"]["error"]
    assert any("3450 grams" in json.dumps(request) for request in judge.requests)
    told = run.summary["judged"]
    assert told["judges"] == ["tiny-judge"]
    recall = told["metrics"]["contextual_recall"]
    assert (recall["mean"], recall["questions"], recall["errors"]) == (1, 1, 0)
    assert told["metrics"]["faithfulness"] == {"errors": 1}
    assert run.is_reliable, "its own figures do not depend on the judge"
    assert count_spent_tokens() == 110 * len(judge.requests)


def test_a_judge_that_is_away_is_told_and_not_waited_for_without_end(answers, judge):
    judge.status = 503
    run = answered(answers)
    assert run.is_reliable
    assert all(result.judge_error and not result.judged for result in run.answer_results.all())
    assert len(judge.requests) == measurement.MOST_UNAVAILABLE
    assert run.summary["judged"]["metrics"] == {}


def test_the_days_budget_holds_for_runs_too(answers, judge, settings):
    settings.JUDGE_DAILY_BUDGET_TOKENS = 100
    JudgeUsage.objects.create(day=timezone.localdate(), prompt_tokens=100)
    run = answered(answers)
    assert judge.requests == []
    assert "budget of 100 tokens" in run.answer_results.first().judge_error
