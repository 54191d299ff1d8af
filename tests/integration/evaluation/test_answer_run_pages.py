"""Answers runs in the admin, and in the terminal."""

import json

import pytest
from django.core.management import CommandError, call_command

from evaluation.admin.run_admin import verdict_badge
from evaluation.models import EvaluationQuestion, EvaluationRun, ExpectedPassage
from evaluation.runs import queue
from evaluation.sets import building
from retrieval.models import Chunk
from retrieval.search.profiles.profiles import NamedProfile
from tests.integration.evaluation.test_set_pages import QUESTIONS_PAGE, RUNS, SETS
from tests.support.evaluation_sets import ANSWERS, BY_WORDS, MEANING, answered, set_of
from tests.support.pages import messages

pytestmark = pytest.mark.django_db(transaction=True)

EVIL = "<script>alert(1)</script>"
PUMP, VALVE, HOURS, FOOTBALL = ANSWERS


def test_what_can_be_run_is_offered_with_its_number_and_what_cannot_says_why(admin, answers, library):
    page = admin.get(f"{SETS}{answers.pk}/change/").content.decode()
    assert "Run answers (4)" in page
    assert "Run search" not in page
    assert "No question of the set has an expected passage" in page
    assert "agreement over time" in page
    other = admin.get(f"{SETS}{set_of(library).pk}/change/").content.decode()
    assert "Run search (6)" in other
    assert "Run answers" not in other
    assert "nDCG@10 over time" in other


def test_a_run_of_answers_is_asked_for_by_its_button(admin, answers):
    asked = admin.post(f"{SETS}{answers.pk}/run/", {"profile": "built-in", "kind": "answers"}, follow=True)
    run = EvaluationRun.objects.get()
    assert messages(asked) == [f"Run #{run.pk} is requested."]
    assert (run.kind, run.total, run.created_by.username) == ("answers", 4, "admin")
    for kind, told in (("search", "has an expected passage"), ("other", "Select a valid choice"), ("", "required")):
        refused = admin.post(f"{SETS}{answers.pk}/run/", {"profile": "built-in", "kind": kind}, follow=True)
        assert told in messages(refused)[0]
    assert EvaluationRun.objects.count() == 1


def test_the_page_of_a_run_shows_what_is_wrong_first(admin, answers):
    run = answered(answers)
    response = admin.get(f"{RUNS}{run.pk}/change/")
    rows = response.context["rows"]
    assert [result.text for result, _explanation in rows][0] == HOURS
    assert "wrong" in verdict_badge(rows[0][0])
    assert all("right" in verdict_badge(result) for result, _explanation in rows[1:])
    page = response.content.decode()
    assert ("expectations met", None, 0) in response.context["metrics"]
    assert "Wrong only (1)" in page
    assert "data-live" not in page
    assert "style=" not in page
    wrong = admin.get(f"{RUNS}{run.pk}/change/?wrong=1")
    assert [result.text for result, _explanation in wrong.context["rows"]] == [HOURS]
    run.answer_results.update(agreement=1)
    assert "No answer is wrong." in admin.get(f"{RUNS}{run.pk}/change/?wrong=1").content.decode()
    run.answer_results.filter(text=HOURS).update(agreement=None)
    rows = admin.get(f"{RUNS}{run.pk}/change/").context["rows"]
    assert [result.text for result, _explanation in rows][-1] == HOURS
    assert "not measured" in verdict_badge(rows[-1][0])


def test_texts_are_escaped_and_the_judges_figures_shown(admin, answers):
    first, second = answered(answers), answered(answers)
    second.answer_results.update(
        answer=EVIL, expected_answer=EVIL, notice=EVIL, agreement=0, judge="j",
        citations=[{"marker": 1, "source": EVIL, "title": EVIL, "section": EVIL, "quote": EVIL}],
        judged={"faithfulness": {"score": 0.5, "reason": EVIL}, "answer_relevancy": {"error": EVIL}}, judge_error=EVIL,
    )  # fmt: skip
    for address in (f"{RUNS}{second.pk}/change/", f"{RUNS}{second.pk}/compare/{first.pk}/"):
        page = admin.get(address).content.decode()
        assert EVIL not in page
        assert "&lt;script&gt;alert(1)" in page
    told = {"mean": 0.25, "low": 0.125, "high": 0.5, "questions": 3, "errors": 1}
    judged = {"judges": ["tiny-judge"], "metrics": {"faithfulness": told}}
    EvaluationRun.objects.filter(pk=second.pk).update(summary={**second.summary, "judged": judged})
    page = admin.get(f"{RUNS}{second.pk}/change/").content.decode()
    assert "answer relevancy: <strong>error</strong>" in page
    for said in ("Judged by a language model: tiny-judge", "0.250 (0.125 … 0.500)", "3 / 4"):
        assert said in page


def test_two_runs_are_compared_with_both_answers(admin, answers):
    blind = answered(answers, NamedProfile("blind", BY_WORDS))
    blind.answer_results.update(answer="Nobody knows.", agreement=0)
    run = answered(answers)
    page = admin.get(f"{RUNS}{run.pk}/compare/{blind.pk}/")
    better = page.context["groups"][1][2]
    assert [pair.text for pair, _explanation in better][:2] == [PUMP, VALVE]
    html = page.content.decode()
    assert "By agreement:" in html
    assert "Nobody knows." in html
    assert "3450 grams" in html
    search = queue.request_evaluation_run(answers, MEANING)
    assert admin.get(f"{RUNS}{run.pk}/compare/{search.pk}/").status_code == 404
    assert admin.get(f"{RUNS}?kind__exact=search").context["cl"].result_count == 1


def sent(question, **changed):
    passages = list(question.expected_passages.all())
    values = {
        "evaluation_set": question.evaluation_set_id, "text": question.text, "expected_answer": "",
        "expected_passages-TOTAL_FORMS": len(passages), "expected_passages-INITIAL_FORMS": len(passages),
    }  # fmt: skip
    for number, one in enumerate(passages):
        values |= {
            f"expected_passages-{number}-id": one.pk, f"expected_passages-{number}-question": question.pk,
            f"expected_passages-{number}-source": one.source, f"expected_passages-{number}-quote": one.quote,
            f"expected_passages-{number}-grade": one.grade,
        }  # fmt: skip
    return {**values, **changed}


def test_what_the_documents_do_not_answer_expects_nothing_else(admin, library):
    question = set_of(library, questions={"How heavy?": "pump.md"}).questions.get()
    address = f"{QUESTIONS_PAGE}{question.pk}/change/"
    both = admin.post(address, sent(question, expects_refusal="on", expected_answer="3450 grams"))
    assert "has no expected answer: empty one of the two" in both.content.decode()
    to_find = admin.post(address, sent(question, expects_refusal="on"))
    assert "has no passage to find" in to_find.content.decode()
    question.refresh_from_db()
    assert not question.expects_refusal
    # A passage known not to answer may stay, and so may one that goes at the same time.
    assert (
        admin.post(address, sent(question, **{"expects_refusal": "on", "expected_passages-0-DELETE": "on"})).status_code
        == 302
    )
    question.refresh_from_db()
    assert question.expects_refusal
    assert "Choose the passages that it should find" not in admin.get(address).content.decode()
    chunk = Chunk.objects.get(document__source="pump.md")
    refused = admin.post(f"{QUESTIONS_PAGE}{question.pk}/expect/", {"chunk": chunk.pk}, follow=True)
    assert "has no passage to find" in messages(refused)[0]
    assert building.add_expected_passage(question, chunk, grade=0).grade == 0
    assert ExpectedPassage.objects.count() == 1
    assert "a refusal" in admin.get(QUESTIONS_PAGE).content.decode()


def test_what_an_answer_must_hold_is_said_a_line_each_and_what_is_missing_is_shown(admin, library):
    question = set_of(library, questions={PUMP: "pump.md"}).questions.get()
    address = f"{QUESTIONS_PAGE}{question.pk}/change/"
    lines = {"must": " 3450 grams | 3450 g \r\n\r\n11 stages\r\na warranty", "must_not": "", "longest": "10"}
    assert admin.post(address, sent(question, **lines)).status_code == 302
    question.refresh_from_db()
    assert (question.must, question.must_not) == (["3450 grams | 3450 g", "11 stages", "a warranty"], [])
    assert "3450 grams | 3450 g\n11 stages\na warranty</textarea>" in admin.get(address).content.decode()
    assert "1 passage, words of an answer" in admin.get(QUESTIONS_PAGE).content.decode()
    run = answered(question.evaluation_set)
    shown = admin.get(f"{RUNS}{run.pk}/change/").content.decode()
    assert "missing: 11 stages" in shown
    assert "characters too long" in shown
    assert "expectations met" in shown
    assert "wrong" in verdict_badge(run.answer_results.get())
    both = admin.post(address, sent(question, **lines, expects_refusal="on"))
    assert "has no expected answer: empty one of the two" in both.content.decode()


def test_drafts_are_what_no_run_asks(admin, answers):
    EvaluationQuestion.objects.create(evaluation_set=answers, text="A draft")
    listed = {draft: admin.get(f"{QUESTIONS_PAGE}?draft={draft}").context["cl"].result_count for draft in ("yes", "no")}
    assert listed == {"yes": 1, "no": 4}
    (row,) = admin.get(SETS).context["cl"].result_list
    assert (row.question_count, row.asked_count) == (5, 4)
    assert "1 of them is a draft" in admin.get(f"{SETS}{answers.pk}/change/").content.decode()


def test_the_command_runs_a_set_now(answers, capsys):
    call_command("evaluate_set", "answers", "--kind", "answers", "--json")
    told = json.loads(capsys.readouterr().out)
    run = EvaluationRun.objects.get()
    assert (told["run"], told["set"], told["kind"], told["profile"]) == (run.pk, "answers", "answers", "built-in")
    assert told["metrics"]["agreement"]["questions"] == 4
    assert told["metrics"]["agreement"]["mean"] == pytest.approx(run.summary["metrics"]["agreement"]["mean"], abs=1e-4)
    assert run.enqueued_at is None, "no worker was told"
    call_command("evaluate_set", "answers", "--kind", "answers", "--profile", "built-in")
    out = capsys.readouterr().out
    assert "Answers: 4 questions, built-in" in out
    assert "of 4" in out


def test_the_command_says_what_it_cannot_run(answers, monkeypatch):
    for arguments, message in (
        (["nowhere"], "There is no evaluation set named 'nowhere'"),
        (["answers"], "a search run has nothing to measure"),
        (["answers", "--kind", "answers", "--profile", "default v9"], "no search profile named 'default v9'"),
        (["answers", "--kind", "answers", "--profile", "x"], "There is no search profile named 'x'"),
    ):
        with pytest.raises(CommandError, match=message):
            call_command("evaluate_set", *arguments)
    assert not EvaluationRun.objects.exists()

    def fail(*_args, **_options):
        raise RuntimeError("the database is away")

    monkeypatch.setattr("evaluation.runs.measurement.search", fail)
    with pytest.raises(CommandError, match="RuntimeError: the database is away"):
        call_command("evaluate_set", "answers", "--kind", "answers")
    assert EvaluationRun.objects.get().status == "cancelled"
