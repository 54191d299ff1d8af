"""Drafts of documents on the pages of evaluation: what a gate says of one, runs of one, and where none belongs."""

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from chat.models import Feedback
from evaluation.admin.run_admin import draw_trend_chart
from evaluation.dashboard.gaps import find_knowledge_gaps, find_nearest_documents, find_unanswered_questions
from evaluation.dashboard.scope import build_scope, parse_scope
from evaluation.models import EvaluationRun, EvaluationSet, GatePolicy
from evaluation.runs import run_execution
from evaluation.runs.results import find_run_measure
from evaluation.sets import building
from retrieval.documents.drafts import lifecycle
from retrieval.models import Collection
from retrieval.search.profiles import profiles
from tests.support.evaluation_sets import BY_MEANING, measured, version_of
from tests.support.judged_answers import completed_answer
from tests.support.pages import boss, messages

pytestmark = pytest.mark.django_db(transaction=True)

SETS = "/admin/evaluation/evaluationset/"
RUNS = "/admin/evaluation/evaluationrun/"
GATES = "/admin/evaluation/gatepolicy/"


@pytest.fixture
def library(library):
    """Return the library with a profile in force."""
    profiles.publish_profile(version_of(BY_MEANING))
    return library


@pytest.fixture
def policy(evaluation_set):
    return GatePolicy.objects.create(evaluation_set=evaluation_set, metric="hit@10", required_for_documents=True)


@pytest.fixture
def working_copy(draft):
    return Collection.objects.get(draft=draft)


def html(response):
    return " ".join(response.content.decode().split())


def test_a_draft_is_measured_and_shown_beside_what_is_in_service(admin, policy, draft, working_copy):
    address = reverse("admin:evaluation_gatepolicy_check", args=[policy.pk, "drafts", draft.pk])
    page = admin.get(address)
    back = reverse("admin:retrieval_draft_change", args=[draft.pk])
    assert page.context["title"] == "Gate Library: Library (draft)"
    assert "have not both been measured" in html(page)
    assert f'<a href="{back}">{draft}</a>' in html(page)
    assert "Run now" in html(page)
    assert "Publish" not in html(page), "a draft is published on its own page"
    assert messages(admin.post(address, follow=True)) == ["2 runs were asked for."]
    running = admin.get(address)
    assert 'id="gate" data-live' in html(running)
    assert "Run now" not in html(running)
    working_copy.documents.get(source="dogs.md").delete()
    for run in EvaluationRun.objects.all():
        run_execution.measure_run(run.pk)
    shown = admin.get(address)
    assert "is not significantly worse than Library" in html(shown)
    assert "data-live" not in html(shown)
    (_, _, worse, number), (_, _, _, better) = shown.context["groups"]
    assert (number, better) == (2, 0)
    assert {pair.text for pair, _explanation in worse} == {"May canines come along?", "Is bringing puppies allowed?"}
    assert f"collection={working_copy.slug}" in worse[0][1]
    assert admin.get(worse[0][1]).status_code == 200
    assert "is-bad" not in html(shown), "that the documents differ is no caveat here"
    assert shown.content.decode().count("(draft)</th>") == 1


def test_the_page_of_a_draft_that_cannot_be_measured_says_so(admin, policy, library):
    copying = lifecycle.begin_draft(library)
    address = reverse("admin:evaluation_gatepolicy_check", args=[policy.pk, "drafts", copying.pk])
    assert admin.get(address).status_code == 200
    told = messages(admin.post(address, follow=True))
    assert told == [f"The documents of {copying} cannot be asked: it is being copied."]
    lifecycle.discard_draft(copying)
    assert admin.get(address).url == reverse("admin:retrieval_draft_change", args=[copying.pk])
    assert not EvaluationRun.objects.exists()
    foreign = lifecycle.begin_draft(Collection.objects.create(slug="other", name="Other"))
    assert (
        admin.get(reverse("admin:evaluation_gatepolicy_check", args=[policy.pk, "drafts", foreign.pk])).status_code
        == 404
    )


def test_a_gate_that_comes_to_guard_documents_says_what_that_does_and_is_logged(admin, policy):
    GatePolicy.objects.update(required_for_documents=False)
    change = f"{GATES}{policy.pk}/change/"
    assert "The collection can be changed in drafts only" in html(admin.get(change))
    sent = {"evaluation_set": policy.evaluation_set_id, "metric": "hit@10", "largest_loss": 0}
    saved = admin.post(change, {**sent, "required_for_documents": "on"}, follow=True)
    assert "From now on, the documents of Library can only be changed in drafts." in messages(saved)
    assert "required for changed documents" in LogEntry.objects.latest("pk").get_change_message().lower()
    assert "column-required_for_documents" in html(admin.get(GATES))
    again = admin.post(change, {**sent, "required_for_documents": "on", "largest_loss": 0.1}, follow=True)
    assert len(messages(again)) == 1


def test_a_run_of_the_draft_is_asked_for_on_the_sets_page(admin, evaluation_set, library):
    change, run = f"{SETS}{evaluation_set.pk}/change/", f"{SETS}{evaluation_set.pk}/run/"
    assert 'name="draft"' not in html(admin.get(change))
    draft = lifecycle.begin_draft(library)
    assert 'name="draft"' not in html(admin.get(change)), "it is being copied"
    lifecycle.resume_draft(draft.pk)
    assert f'<option value="{draft.pk}">{draft}</option>' in html(admin.get(change))
    wanted = {"profile": "published", "kind": "search"}
    admin.post(run, {**wanted, "draft": draft.pk})
    assert EvaluationRun.objects.get().draft == draft
    admin.post(run, {**wanted, "draft": ""})
    assert EvaluationRun.objects.latest("pk").draft is None
    lifecycle.discard_draft(draft)
    told = messages(admin.post(run, {**wanted, "draft": draft.pk}, follow=True))
    assert told[-1] == "This draft is not open any more."
    assert EvaluationRun.objects.count() == 2


def test_runs_of_a_draft_are_marked_and_leave_the_figures_of_the_set_alone(admin, evaluation_set, draft, library):
    in_service, of_draft = measured(evaluation_set), measured(evaluation_set, draft=draft)
    of_draft.results.update(hit=0)
    mark = f"draft #{draft.pk}"
    listed = admin.get(f"{SETS}{evaluation_set.pk}/change/")
    assert [run.draft for run in listed.context["runs"]] == [draft, None]
    assert html(listed).count(f"{mark}</span>") == 1
    chart = str(draw_trend_chart(evaluation_set, find_run_measure("search")))
    assert (f"#{in_service.pk} " in chart, f"#{of_draft.pk} " in chart) == (True, False)
    rows = html(admin.get(RUNS))
    assert mark in rows
    assert "in service" in rows


def test_no_set_is_made_for_a_working_copy(admin, library, working_copy):
    page = html(admin.get(f"{SETS}add/"))
    assert f'<option value="{library.pk}">' in page
    assert f'<option value="{working_copy.pk}">' not in page
    sent = {"name": "Mine", "slug": "mine", "collection": working_copy.pk, "description": ""}
    assert "errorlist" in html(admin.post(f"{SETS}add/", sent))
    assert not EvaluationSet.objects.exists()


def asked(collection, question, document):
    answer = completed_answer(question=question)
    answer.sources[0]["document"]["id"] = document.pk
    answer.collection = collection
    answer.save()
    Feedback.objects.create(answer=answer, helpful=False)
    return answer


def test_a_bad_answer_from_a_draft_becomes_a_test_case_of_its_collection(library, working_copy):
    document = working_copy.documents.get(source="pump.md")
    for collection in (working_copy, None):
        assert building.find_collection_of_answer(asked(collection, "How heavy?", document)) == library


def test_the_dashboard_is_about_what_is_in_service(admin, admin_user, library, working_copy):
    assert parse_scope({"collection": working_copy.slug}, admin_user).collection is None
    assert parse_scope({"collection": library.slug}, admin_user).collection == library
    assert working_copy.slug not in html(admin.get("/admin/evaluation/dashboard/"))
    in_service, copied = library.documents.get(source="pump.md"), working_copy.documents.get(source="pump.md")
    of_library = asked(library, "How heavy is it?", in_service)
    anywhere = asked(None, "How long does it last?", copied)
    asked(working_copy, "What is new in the draft?", copied)
    found, number = find_unanswered_questions(build_scope(boss()))
    assert number == 2
    assert {one.answer for one in found} == {str(of_library.pk), str(anywhere.pk)}
    assert find_knowledge_gaps(build_scope(boss())).total == 2
    near = find_nearest_documents([[str(of_library.pk)], [str(anywhere.pk)]], build_scope(boss()).documents())
    assert near == [[in_service], []]
