"""Evaluation sets, runs and gates in the admin."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.paginator import UnorderedObjectListWarning
from django.urls import reverse
from django.utils.html import escape

from chat.models import Feedback
from evaluation.models import EvaluationQuestion, EvaluationRun, EvaluationSet, ExpectedPassage, GatePolicy
from evaluation.models.evaluation_set import build_runnable_condition
from evaluation.runs import queue, run_execution
from evaluation.sets.resolution import find_expected_chunks
from retrieval.models import Chunk, Publication
from retrieval.search.profiles import profiles
from retrieval.search.profiles.profiles import NamedProfile
from tests.support.evaluation_sets import BY_MEANING, BY_WORDS, set_of, version_of
from tests.support.judged_answers import completed_answer
from tests.support.pages import messages, staff

pytestmark = pytest.mark.django_db(transaction=True)

SETS = "/admin/evaluation/evaluationset/"
QUESTIONS_PAGE = "/admin/evaluation/evaluationquestion/"
RUNS = "/admin/evaluation/evaluationrun/"
QUERIES = (
    b'{"_id": "q1", "text": "How heavy is it?"}\n'
    b'{"_id": "q2", "text": "Who won?", "expects_refusal": true}\n'
    b'{"_id": "q3", "text": "And when?", "answer": " At nine. ", "must": ["9 am|nine"], "max_chars": 80}\n'
)
QRELS = b"q1\tpump.md\t2\nq3\thours.md\t1\n"


def add_set(admin, library, queries=QUERIES, qrels=QRELS):
    sent = {"name": "Mine", "slug": "mine", "collection": library.pk, "description": ""}
    files = {"queries": SimpleUploadedFile("q", queries), "qrels": SimpleUploadedFile("r", qrels)}
    return admin.post(f"{SETS}add/", sent | {name: file for name, file in files.items() if file.size}).content.decode()


def test_a_set_comes_from_files_and_expects_whole_documents(admin, library):
    add_set(admin, library)
    first, second, third = EvaluationSet.objects.get(slug="mine").questions.order_by("pk")
    assert (first.external_id, first.text, first.origin) == ("q1", "How heavy is it?", "imported")
    assert (second.expected_answer, second.expects_refusal) == ("", True)
    assert (third.expected_answer, third.must, third.longest) == ("At nine.", ["9 am|nine"], 80)
    passages = list(ExpectedPassage.objects.all())
    assert [(one.question, one.source, one.grade) for one in passages] == [
        (first, "pump.md", 2),
        (third, "hours.md", 1),
    ]
    assert all(one.whole and one.is_resolved for one in find_expected_chunks(library.pk, passages).values())


def test_a_bad_file_is_told_by_line_and_no_set_is_made(admin, library, monkeypatch):
    html = add_set(admin, library, qrels=QRELS + b"q1\tgone\t1\nq1\tlost\t1\n")
    assert escape("qrels.tsv, line 3: the collection library has no document 'gone', and 1 lines more") in html
    assert "This field is required." in add_set(admin, library, queries=b"")
    monkeypatch.setattr("evaluation.admin.set_admin.LARGEST_BYTES", 10)
    assert "The file is larger than" in add_set(admin, library)
    assert not EvaluationSet.objects.exists()


def test_sets_are_offered_in_the_order_of_their_names(admin, evaluation_set, recwarn):
    field = {"app_label": "evaluation", "model_name": "evaluationquestion", "field_name": "evaluation_set"}
    offered = admin.get(reverse("admin:autocomplete"), field).json()["results"]
    assert [one["text"] for one in offered] == [evaluation_set.name]
    assert not [one for one in recwarn if issubclass(one.category, UnorderedObjectListWarning)]


def test_questions_are_added_to_the_set_one_after_another(admin, evaluation_set):
    page = admin.get(f"{SETS}{evaluation_set.pk}/change/").content.decode()
    address = f"{QUESTIONS_PAGE}add/?evaluation_set={evaluation_set.pk}"
    assert f'href="{address}"' in page
    assert f'<option value="{evaluation_set.pk}" selected>' in admin.get(address).content.decode()
    written = {
        "evaluation_set": evaluation_set.pk,
        "text": "Who won?",
        "expects_refusal": "on",
        "expected_passages-TOTAL_FORMS": 0,
        "expected_passages-INITIAL_FORMS": 0,
    }
    assert admin.post(address, {**written, "_addanother": "1"}).url == address
    assert admin.post(address, written).url == QUESTIONS_PAGE
    assert evaluation_set.questions.filter(text="Who won?", expects_refusal=True).count() == 2


def test_a_bad_answer_becomes_a_test_case_by_a_click(admin, library):
    chunk = Chunk.objects.get(document__source="pump.md")
    answer = completed_answer(question="How heavy is it?")
    answer.sources[0] |= {"chunk_id": chunk.pk, "document": {"id": chunk.document_id, "title": "Pump", "url": ""}}
    answer.save()
    Feedback.objects.create(answer=answer, helpful=False)
    page = admin.get(reverse("admin:chat_answer_change", args=[answer.pk])).content.decode()
    make = reverse("admin:evaluation_make_case")
    assert f'action="{make}"' in page
    assert f'value="{answer.pk}"' in page
    response = admin.post(make, {"answer": str(answer.pk)}, follow=True)
    question = EvaluationQuestion.objects.get()
    assert (question.text, question.answer, question.origin) == ("How heavy is it?", answer, "feedback")
    assert question.evaluation_set.slug == "complaints-library"
    assert [offered for offered, *_ in response.context["of_answer"]] == [chunk]
    assert "draft" in admin.get(f"{QUESTIONS_PAGE}?draft=yes").content.decode()
    # A second click, and another passage found by searching.
    again = admin.post(make, {"answer": str(answer.pk)}, follow=True)
    assert messages(again) == ["This answer is a test case already."]
    found = admin.get(f"{QUESTIONS_PAGE}{question.pk}/change/", {"passages": "ball valve"})
    assert found.context["found"][0][0].document.source == "valve.md"
    expect = reverse("admin:evaluation_evaluationquestion_expect", args=[question.pk])
    picked = admin.post(expect, {"chunk": chunk.pk}, follow=True)
    assert messages(picked) == ["Expected: a passage of Pump."]
    assert picked.context["of_answer"][0][2]
    assert question.expected_passages.get().content_hash == chunk.content_hash
    assert not EvaluationQuestion.objects.exclude(build_runnable_condition()).exists()
    assert "is gone" in messages(admin.post(expect, {"chunk": "999999"}, follow=True))[0]
    assert admin.post(make, {"answer": "x"}).status_code == 404
    assert admin.get(make).status_code == 405


def test_words_that_were_edited_lose_their_hash(admin, evaluation_set):
    question = evaluation_set.questions.first()
    expected = question.expected_passages.get()
    sent = {
        "evaluation_set": evaluation_set.pk, "text": question.text, "expected_answer": "",
        "expected_passages-TOTAL_FORMS": 1, "expected_passages-INITIAL_FORMS": 1,
        "expected_passages-0-id": expected.pk, "expected_passages-0-question": question.pk,
        "expected_passages-0-source": "pump.md", "expected_passages-0-quote": "weighs 3450 grams",
        "expected_passages-0-grade": 2,
    }  # fmt: skip
    assert admin.post(f"{QUESTIONS_PAGE}{question.pk}/change/", sent).status_code == 302
    expected.refresh_from_db()
    assert (expected.quote, expected.grade, expected.content_hash) == ("weighs 3450 grams", 2, "")
    assert "ragsite-status-ready" in admin.get(f"{QUESTIONS_PAGE}{question.pk}/change/").content.decode()
    expected.quote = "weighs a ton"
    expected.save()
    assert "ragsite-status-failed" in admin.get(f"{QUESTIONS_PAGE}{question.pk}/change/").content.decode()


def test_a_run_is_asked_for_and_shows_its_results(admin, evaluation_set):
    change = f"{SETS}{evaluation_set.pk}/"
    assert "No run of this set is done yet." in admin.get(f"{change}change/").content.decode()
    version = version_of(BY_WORDS)
    response = admin.post(f"{change}run/", {"profile": version.pk, "kind": "search"}, follow=True)
    run = EvaluationRun.objects.get()
    assert messages(response) == [f"Run #{run.pk} is requested."]
    assert "data-live" in response.content.decode()
    assert (run.profile_version, run.total, run.created_by.username) == (version, 6, "admin")
    run_execution.measure_run(run.pk)
    page = admin.get(f"{RUNS}{run.pk}/change/").content.decode()
    assert "data-live" not in page
    assert "not found: 1" in page
    assert "style=" not in page
    explained = [explanation for _result, explanation in admin.get(f"{RUNS}{run.pk}/change/").context["rows"]]
    assert admin.get(explained[0]).status_code == 200
    assert "default v1" in admin.get(RUNS).content.decode()
    assert "trend-title" in admin.get(f"{change}change/?metric=hit@10").content.decode()
    assert messages(admin.post(f"{change}run/", {"profile": "999", "kind": "search"}, follow=True))
    assert EvaluationRun.objects.count() == 1


def test_two_runs_are_compared_and_one_is_cancelled(admin, evaluation_set):
    runs = [
        run_execution.measure_run(queue.request_evaluation_run(evaluation_set, profile).pk)
        for profile in (NamedProfile("built-in", BY_WORDS), profiles.build_named_profile(version_of(BY_MEANING)))
    ]
    first, second = runs
    page = admin.get(f"{RUNS}{second.pk}/compare/{first.pk}/")
    html = page.content.decode()
    assert "By nDCG@10:" in html
    assert "May canines come along?" in html
    assert "not found: 1 → #1" in html
    assert [group[0] for group in page.context["groups"]] == ["Worse", "Better"]
    assert f"b={second.profile_version_id}" in page.context["groups"][1][2][0][1]
    foreign = queue.request_evaluation_run(
        set_of(evaluation_set.collection, "other"), NamedProfile("built-in", BY_WORDS)
    )
    assert admin.get(f"{RUNS}{first.pk}/compare/{foreign.pk}/").status_code == 404
    cancelled = admin.post(RUNS, {"action": "cancel_runs", "_selected_action": [foreign.pk]}, follow=True)
    assert messages(cancelled) == ["1 run was cancelled."]
    assert run_execution.measure_run(foreign.pk) is None


def test_publishing_is_refused_measured_and_overridden_on_the_pages(admin, evaluation_set):
    policy = GatePolicy.objects.create(evaluation_set=evaluation_set, metric="hit@10")
    first, second = version_of(BY_MEANING), version_of(BY_WORDS)
    profiles.publish_profile(first, override="the first one")
    publish = reverse("admin:retrieval_searchprofile_publish", args=[second.pk])
    refused = admin.post(publish)
    assert refused.status_code == 409
    address = reverse("admin:evaluation_gatepolicy_check", args=[policy.pk, "versions", second.pk])
    assert f'href="{address}"' in refused.content.decode()
    assert profiles.find_published_version() == first
    assert "have not both been measured" in admin.get(address).content.decode()
    assert messages(admin.post(address, follow=True)) == ["2 runs were asked for."]
    assert "data-live" in admin.get(address).content.decode()
    for run in EvaluationRun.objects.all():
        run_execution.measure_run(run.pk)
    assert "May canines come along?" in admin.get(address).content.decode()
    # The profile in force loses on a third of six questions at most, which is not significant.
    EvaluationRun.objects.get(profile_name="default v2").results.update(hit=0)
    assert "is significantly worse than default v1" in admin.get(address).content.decode()
    assert "Say why it should be published anyway." in admin.post(publish, {"override": " "}).content.decode()
    done = admin.post(publish, {"override": "The <b>customer</b> waits."}, follow=True)
    assert messages(done) == ["In use: default v2."]
    history = done.content.decode()
    assert "The &lt;b&gt;customer&lt;/b&gt; waits." in history
    assert "is significantly worse than default v1" in history
    assert Publication.objects.first().published_by.username == "admin"


def test_what_may_be_done_depends_on_permissions(client, evaluation_set):
    answer = completed_answer()
    run = queue.request_evaluation_run(evaluation_set, NamedProfile("built-in", BY_WORDS))
    policy = GatePolicy.objects.create(evaluation_set=evaluation_set)
    version = version_of(BY_WORDS)
    question = evaluation_set.questions.first()
    check = reverse("admin:evaluation_gatepolicy_check", args=[policy.pk, "versions", version.pk])
    looks = ("evaluationset", "evaluationrun", "evaluationquestion", "gatepolicy", "searchprofile")
    client.force_login(staff("change_searchprofile", *(f"view_{model}" for model in looks)))
    for address in (SETS, f"{SETS}{evaluation_set.pk}/change/", RUNS, f"{RUNS}{run.pk}/change/", check):
        assert client.get(address).status_code == 200
    for address, sent in (
        (f"{SETS}add/", {}),
        (f"{SETS}make-case/", {"answer": str(answer.pk)}),
        (f"{SETS}{evaluation_set.pk}/run/", {"profile": "published"}),
        (reverse("admin:evaluation_evaluationquestion_expect", args=[question.pk]), {"chunk": "1"}),
        (check, {}),
    ):
        assert client.post(address, sent).status_code == 403, address
    # An override needs its own permission.
    publish = reverse("admin:retrieval_searchprofile_publish", args=[version.pk])
    response = client.post(publish, {"override": "I want to."})
    assert (response.status_code, profiles.find_published_version()) == (409, None)
    assert "needs a permission" in response.content.decode()
    client.logout()
    assert client.get(f"{SETS}{evaluation_set.pk}/change/").status_code == 302
