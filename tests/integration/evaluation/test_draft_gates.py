"""Drafts of documents: measured beside the documents in service, and published only when they are not worse."""

import json

import pytest
from django.core.management import CommandError, call_command

from evaluation import gates
from evaluation.exceptions import EvaluationError
from evaluation.gates import Verdict
from evaluation.models import EvaluationRun, GatePolicy
from evaluation.runs import queue, run_execution
from evaluation.runs.results import compare_runs
from retrieval.documents import submission
from retrieval.documents.drafts import lifecycle
from retrieval.exceptions import DocumentRejected
from retrieval.gates import PublicationRefused
from retrieval.models import Collection, CollectionStatistics, Document, Draft
from retrieval.search.profiles import profiles
from tests.support.evaluation_sets import BY_MEANING, DOCUMENTS, measure_all, measured, set_of, version_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def library(library):
    """Return the library with a profile in force."""
    profiles.publish_profile(version_of(BY_MEANING))
    return library


@pytest.fixture
def policy(evaluation_set):
    return GatePolicy.objects.create(
        evaluation_set=evaluation_set, metric="hit@10", required_for_publishing=False, required_for_documents=True
    )


def working_copy(draft):
    return Collection.objects.get(draft=draft)


def without_the_answers(draft):
    for document in Document.objects.filter(collection__draft=draft, source__in=DOCUMENTS):
        document.delete()


def only_objection(draft):
    (objection,) = gates.find_gate_objections(draft)
    return objection.reason


def test_a_harmless_draft_is_published_once_it_was_measured(policy, draft, library, ingest):
    ingest(working_copy(draft), "new.md", "# New\n\nThe boiler holds forty litres.")
    with pytest.raises(
        PublicationRefused, match=r"Library \(draft\) and Library have not both been measured"
    ) as caught:
        lifecycle.publish_draft(draft)
    (objection,) = caught.value.objections
    assert objection.reason.startswith("Library: Library (draft) and Library have not both")
    assert objection.address == f"/admin/evaluation/gatepolicy/{policy.pk}/drafts/{draft.pk}/"
    requested = gates.request_runs(policy, draft)
    assert [(run.draft, run.profile_name) for run in requested] == [(draft, "default v1"), (None, "default v1")]
    assert gates.check_gate(policy, draft).verdict is Verdict.RUNNING
    assert only_objection(draft) == "Library: Library (draft) is being measured."
    measure_all()
    checked = gates.check_gate(policy, draft)
    assert checked.verdict is Verdict.PASSED
    assert (checked.candidate.run, checked.in_force.run) == tuple(requested)
    assert (checked.comparison.same, checked.comparison.questions) == (6, 6), "a copy is searched as the original is"
    assert gates.request_runs(policy, draft) == []
    assert "Library (draft) is not significantly worse than Library" in gates.describe_gate_check(checked)
    lifecycle.publish_draft(draft)
    published = lifecycle.resume_draft(draft.pk)
    assert (published.status, published.objections) == (Draft.Status.PUBLISHED, [])
    assert library.documents.filter(source="new.md").exists()


def test_a_draft_that_lacks_what_the_questions_need_is_published_with_a_reason_alone(policy, draft, library):
    without_the_answers(draft)
    gates.request_runs(policy, draft)
    measure_all()
    assert gates.check_gate(policy, draft).verdict is Verdict.WORSE
    with pytest.raises(PublicationRefused, match=r"\(draft\) is significantly worse than Library: hit@10 -1\.0"):
        lifecycle.publish_draft(draft)
    with pytest.raises(PublicationRefused):
        lifecycle.publish_draft(draft, override="  ")
    assert library.documents.count() == len(DOCUMENTS)
    lifecycle.publish_draft(draft, override="They are out of date.")
    published = lifecycle.resume_draft(draft.pk)
    assert (published.status, published.override) == (Draft.Status.PUBLISHED, "They are out of date.")
    assert "is significantly worse than" in published.objections[0]["reason"]
    assert not library.documents.exists()


@pytest.mark.parametrize("change", ["draft", "being read", "in service"])
def test_what_was_measured_before_something_changed_does_not_count(policy, draft, library, ingest, change):
    gates.request_runs(policy, draft)
    measure_all()
    assert gates.check_gate(policy, draft).verdict is Verdict.PASSED
    expected = Verdict.NOT_MEASURED
    if change == "draft":
        ingest(working_copy(draft), "new.md", "# New\n\nSomething new.")
    elif change == "being read":
        submission.submit(working_copy(draft), "pump.md", b"# Nothing", enqueue=False)
        expected = Verdict.BEING_READ
    else:
        CollectionStatistics.objects.filter(pk=library.pk).update(version=99)
    checked = gates.check_gate(policy, draft)
    assert checked.verdict is expected
    assert checked.is_objection
    assert len(gates.request_runs(policy, draft)) == (0 if change == "being read" else 1)


def test_only_gates_on_documents_of_this_collection_are_asked(policy, draft):
    other = Collection.objects.create(slug="other", name="Other")
    assert gates.has_document_gate(policy.evaluation_set.collection)
    assert not gates.has_document_gate(other)
    GatePolicy.objects.create(evaluation_set=set_of(other, "elsewhere", {}), required_for_documents=True)
    assert len(list(gates.find_gate_objections(draft))) == 1
    GatePolicy.objects.filter(pk=policy.pk).update(required_for_documents=False, required_for_publishing=True)
    assert list(gates.find_gate_objections(draft)) == []
    assert not gates.has_document_gate(policy.evaluation_set.collection)


def test_a_guarded_collection_is_changed_in_a_draft_alone(policy, library, ingest):
    with pytest.raises(DocumentRejected, match="has a gate, so it can be changed in drafts only"):
        ingest(library, "new.md", "# New")
    draft = lifecycle.resume_draft(lifecycle.begin_draft(library).pk)
    with pytest.raises(DocumentRejected, match=r"choose Library \(draft\) instead"):
        ingest(library, "new.md", "# New")
    assert ingest(working_copy(draft), "new.md", "# New\n\nSomething new.").status == "ready"
    lifecycle.discard_draft(draft)
    lifecycle.resume_draft(draft.pk)
    GatePolicy.objects.update(required_for_documents=False)
    assert ingest(library, "new.md", "# New\n\nSomething new.").status == "ready"


def test_a_run_of_a_draft_asks_its_documents(evaluation_set, draft, ingest):
    copy = working_copy(draft)
    copy.documents.get(source="dogs.md").delete()
    ingest(copy, "pump.md", "# Pump\n\nIn short: the circulation pump weighs 3450 grams and moves water about.")
    in_service, of_draft = measured(evaluation_set), measured(evaluation_set, draft=draft)
    assert (in_service.unresolved, of_draft.unresolved) == (0, 3)
    assert of_draft.corpus_version == queue.corpus_version(copy.pk)
    found = {result.text: result.hit for result in of_draft.results.all()}
    assert (found["May canines come along?"], found["When does the warehouse open and close?"]) == (0, 1)
    compared = compare_runs(of_draft, in_service)
    assert compared.caveats == (f"The documents are not the same: before in service, after {draft}.",)
    assert compare_runs(measured(evaluation_set, draft=draft), of_draft).caveats == ()
    copy.documents.get(source="valve.md").delete()
    assert compare_runs(measured(evaluation_set, draft=draft), of_draft).caveats == (
        "The documents changed in between.",
    )


def test_an_answers_run_of_a_draft_is_answered_from_its_documents(evaluation_set, draft, ingest):
    evaluation_set.questions.exclude(text="How many grams does the circulation pump weigh?").delete()
    evaluation_set.questions.update(expected_answer="9999 grams")
    ingest(working_copy(draft), "pump.md", "# Pump\n\nThe circulation pump weighs 9999 grams and moves water.")
    runs = [
        run_execution.measure_run(
            queue.request_evaluation_run(evaluation_set, profiles.active_profile(), kind="answers", draft=of).pk
        )
        for of in (draft, None)
    ]
    answers = [run.answer_results.get().answer for run in runs if run is not None]
    assert ["9999 grams" in answer for answer in answers] == [True, False]
    assert "3450 grams" in answers[1]


def test_a_draft_that_has_ended_is_not_asked(evaluation_set, draft, library):
    profile = profiles.active_profile()
    waiting = queue.request_evaluation_run(evaluation_set, profile, draft=draft)
    discarded = lifecycle.discard_draft(draft)
    with pytest.raises(EvaluationError, match="cannot be asked: it is discarded"):
        queue.request_evaluation_run(evaluation_set, profile, draft=discarded)
    run_execution.measure_run(waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.status, waiting.attempts) == ("failed", 1)
    assert waiting.error == f"The documents of {discarded} cannot be asked any more: it has ended."
    lifecycle.resume_draft(draft.pk)
    EvaluationRun.objects.update(status="queued", lease=None, attempts=0, error="")
    run_execution.measure_run(waiting.pk)
    waiting.refresh_from_db()
    assert waiting.collection_id is None
    assert "it has ended" in waiting.error
    with pytest.raises(EvaluationError, match="cannot be asked: it is being copied"):
        queue.request_evaluation_run(evaluation_set, profile, draft=lifecycle.begin_draft(library))


def test_the_command_runs_a_set_on_the_draft(evaluation_set, library, capsys):
    with pytest.raises(CommandError, match="Library has no open draft"):
        call_command("evaluate_set", "library", "--draft")
    draft = lifecycle.begin_draft(library)
    with pytest.raises(CommandError, match="is being copied"):
        call_command("evaluate_set", "library", "--draft")
    assert not EvaluationRun.objects.exists()
    lifecycle.resume_draft(draft.pk)
    without_the_answers(draft)
    call_command("evaluate_set", "library", "--draft", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["draft"], found["metrics"]["hit@10"]["mean"]) == (draft.pk, 0)
    call_command("evaluate_set", "library", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["draft"], found["metrics"]["hit@10"]["mean"]) == (None, 1)
    call_command("evaluate_set", "library", "--draft")
    assert f", on {draft}\n" in capsys.readouterr().out
