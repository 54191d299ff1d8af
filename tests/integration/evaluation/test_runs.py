"""Runs of an evaluation set: measured by the search that answers users, each question once, whatever happens."""

from dataclasses import replace

import pytest
from django.utils import timezone

from core.dataclass_json import to_json
from evaluation.models import EvaluationQuestion, EvaluationRun, ExpectedPassage, QuestionResult
from evaluation.runs import measurement, queue, run_execution
from evaluation.runs.results import compare_runs, read_confidence_interval
from retrieval.models import CollectionStatistics
from retrieval.profile_settings import ProfileSettings
from retrieval.protocols import Reranker
from retrieval.search import pipeline as search_module
from retrieval.search.profiles.profiles import BUILT_IN, NamedProfile, get_built_in_profile
from tests.support.evaluation_sets import BY_MEANING, BY_WORDS, MEANING, QUESTIONS, WORDS, measured, set_of

pytestmark = pytest.mark.django_db(transaction=True)


def failing_search(monkeypatch, after, error):
    """Have the search of runs raise from its call number ``after`` on; returns what it was asked."""
    asked = []

    def search(question, filters, **options):
        asked.append(question)
        if len(asked) > after:
            raise error
        return search_module.search(question, filters, **options)

    monkeypatch.setattr(measurement, "search", search)
    return asked


def test_a_run_has_a_result_for_each_question_as_its_profile_finds(evaluation_set):
    meaning, words = measured(evaluation_set, MEANING), measured(evaluation_set, WORDS)
    assert (meaning.status, meaning.asked, meaning.total, meaning.error) == ("done", 6, 6, "")
    assert meaning.is_reliable
    results = list(meaning.results.all())
    assert [result.text for result in results] == list(QUESTIONS)
    assert (results[0].expected[0]["rank"], results[0].expected[0]["source"]) == (1, "pump.md")
    assert results[0].ndcg == results[0].hit == 1
    ndcg = read_confidence_interval(meaning, "ndcg@10")
    assert ndcg.mean == pytest.approx(sum(result.ndcg for result in results) / 6)
    assert ndcg.low <= ndcg.mean <= ndcg.high
    assert 0 < meaning.summary["latency_ms"]["p50"] <= meaning.summary["latency_ms"]["p95"]
    # No document contains "canines".
    canines = words.results.get(text="May canines come along?")
    assert (canines.hit, canines.expected[0]["rank"]) == (0, None)
    compared = compare_runs(meaning, words, "hit@10")
    assert "May canines come along?" in {pair.text for pair in compared.better}
    assert (compared.worse, compared.caveats) == ((), ())
    assert compared.questions == len(compared.better) + compared.same == 6
    assert compared.difference.mean == pytest.approx(len(compared.better) / 6)
    assert [pair.text for pair in compare_runs(words, meaning, "hit@10").worse] == [
        pair.text for pair in compared.better
    ]


def test_a_run_uses_the_settings_that_it_was_asked_with_on_the_documents_that_are_there(
    evaluation_set, library, settings
):
    library.documents.get(source="pump.md").delete()
    run = queue.request_evaluation_run(evaluation_set, NamedProfile(BUILT_IN, get_built_in_profile()))
    settings.RETRIEVAL_DEFAULT_METHOD = "lexical"
    run_execution.measure_run(run.pk)
    run.refresh_from_db()
    assert run.settings["method"] != "lexical"
    assert run.results.get(text="May canines come along?").hit == 1
    assert run.unresolved == 1
    gone = run.results.get(text__contains="grams")
    assert (gone.hit, gone.expected[0]["resolved"], gone.expected[0]["rank"]) == (0, False, None)
    # A shallow profile is measured as deep as it goes.
    shallow = ProfileSettings(depth=2, top_k=1, candidate_multiplier=1, reranker="none")
    assert measured(evaluation_set, NamedProfile("shallow", shallow)).status == "done"


def test_what_is_asked_for_twice_runs_once(evaluation_set):
    run = queue.request_evaluation_run(evaluation_set, WORDS)
    assert queue.request_evaluation_run(evaluation_set, WORDS) == run
    assert queue.request_evaluation_run(evaluation_set, MEANING) != run
    assert run_execution.measure_run(run.pk) is not None
    assert run_execution.measure_run(run.pk) is None
    assert queue.request_evaluation_run(evaluation_set, WORDS) != run
    assert QuestionResult.objects.filter(run=run).count() == 6


@pytest.mark.parametrize("change", ["documents", "embedder"])
def test_what_changes_meanwhile_makes_the_run_untrustworthy(evaluation_set, library, monkeypatch, change):
    as_they_are = queue.describe_run_conditions()

    def search(question, filters, **options):
        if "puppies" in question and change == "documents":
            CollectionStatistics.objects.filter(pk=library.pk).update(version=99)
        elif "puppies" in question:
            monkeypatch.setattr(
                run_execution, "describe_run_conditions", lambda _kind: {**as_they_are, "embedder": "other"}
            )
        return search_module.search(question, filters, **options)

    monkeypatch.setattr(measurement, "search", search)
    run = measured(evaluation_set, WORDS)
    assert (run.status, run.is_reliable) == ("done", False)
    assert f"{change} " in run.unreliable_reason or f"{change}," in run.unreliable_reason
    assert "changed while it ran" in run.unreliable_reason


def test_a_search_that_fails_is_tried_again_where_it_stopped(evaluation_set, monkeypatch):
    asked = failing_search(monkeypatch, 3, RuntimeError("the database is away"))
    run = queue.request_evaluation_run(evaluation_set, WORDS)
    run_execution.measure_run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.error, run.asked) == ("queued", "RuntimeError: the database is away", 2)
    assert run_execution.measure_run(run.pk) is None, "it is not due yet"
    monkeypatch.undo()
    EvaluationRun.objects.update(retry_at=timezone.now())
    run_execution.measure_run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.error, run.asked, run.attempts) == ("done", "", 6, 2)
    assert [result.text for result in run.results.all()] == list(QUESTIONS)
    assert len(asked) == 4


def test_a_reranker_that_does_not_answer_is_no_result(evaluation_set, settings):
    settings.RERANKERS = {"broken": {"BACKEND": f"{__name__}.Broken"}}
    run = queue.request_evaluation_run(evaluation_set, NamedProfile("broken", ProfileSettings(reranker="broken")))
    run_execution.measure_run(run.pk)
    run.refresh_from_db()
    assert run.status == "queued"
    assert "was not searched with all of the profile" in run.error
    assert not run.results.exists()


class Broken(Reranker):
    def score(self, query, candidates, timeout_seconds):
        raise RuntimeError("no scores")


def test_what_cannot_be_measured_fails_at_once(evaluation_set, library):
    empty = set_of(library, "empty", {})
    EvaluationQuestion.objects.create(evaluation_set=empty, text="A draft")
    run = measured(empty, WORDS)
    assert (run.status, run.attempts) == ("failed", 1)
    assert "nothing to measure" in run.error
    question = EvaluationQuestion.objects.create(evaluation_set=empty, text="-pump")
    ExpectedPassage.objects.create(question=question, source="pump.md")
    assert "'-pump' cannot be searched" in measured(empty, WORDS).error
    broken = EvaluationRun.objects.create(
        evaluation_set=evaluation_set, profile_name="old", settings={**to_json(BY_WORDS), "no_more": 1}
    )
    run_execution.measure_run(broken.pk)
    broken.refresh_from_db()
    assert "cannot be read" in broken.error


def test_an_attempt_that_finds_another_set_begins_again(evaluation_set, monkeypatch):
    failing_search(monkeypatch, 3, RuntimeError("away"))
    run = queue.request_evaluation_run(evaluation_set, WORDS)
    run_execution.measure_run(run.pk)
    assert QuestionResult.objects.filter(run=run).count() == 2
    first = QuestionResult.objects.filter(run=run).first()
    ExpectedPassage.objects.filter(question__text=list(QUESTIONS)[0]).update(grade=3)
    monkeypatch.undo()
    EvaluationRun.objects.update(retry_at=None)
    run_execution.measure_run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.asked) == ("done", 6)
    assert not QuestionResult.objects.filter(pk=first.pk).exists()


def test_a_cancelled_run_stops_at_the_next_question(evaluation_set, monkeypatch):
    run = queue.request_evaluation_run(evaluation_set, WORDS)

    def search(question, filters, **options):
        if "warehouse" in question:
            assert queue.cancel_runs(EvaluationRun.objects.filter(pk=run.pk)) == 1
        return search_module.search(question, filters, **options)

    monkeypatch.setattr(measurement, "search", search)
    assert run_execution.measure_run(run.pk) is None
    run.refresh_from_db()
    assert (run.status, run.results.count()) == ("cancelled", 2)
    assert queue.cancel_runs(EvaluationRun.objects.filter(pk=run.pk)) == 0


def test_a_comparison_says_what_else_differs_and_what_a_search_run_cannot_show(evaluation_set, library, ingest):
    before = measured(evaluation_set, MEANING)
    short = NamedProfile("short", replace(BY_MEANING, top_k=1, context_budget_tokens=200))
    assert compare_runs(measured(evaluation_set, short), before).caveats == (
        f"Both runs used the same search depth, so this setting made no difference: top_k {BY_MEANING.top_k} → 1, "
        f"context_budget_tokens {BY_MEANING.context_budget_tokens} → 200.",
    )
    evaluation_set.questions.first().delete()
    ingest(library, "new.md", "# New\n\nSomething about canines.")
    compared = compare_runs(measured(evaluation_set, MEANING), before)
    assert compared.questions == 5
    assert compared.in_one_only == 0, "what was deleted is compared with nothing"
    assert len(compared.caveats) == 2
    assert "set was changed" in compared.caveats[0]
    assert "documents changed" in compared.caveats[1]
    assert before.results.count() == 6
