"""The runs on the pages of evaluation sets, and the buttons that request them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from evaluation.admin.run_presentation import documents_badge, result_text, run_badge, trend_chart
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationRun, EvaluationSet, RunKind
from evaluation.runs import queue
from evaluation.runs.measures import KIND_OF_MEASURE, MEASURES, NOTHING_TO_MEASURE, measure_of
from retrieval.admin.base import PageAdmin
from retrieval.admin.profiles.playground import PUBLISHED, ProfileChoice
from retrieval.admin.rights import WholeCollectionAdmin
from retrieval.models import Draft
from retrieval.search.profiles import NamedProfile, active_profile

NEWEST_RUNS = 10


class RunForm(forms.Form):
    profile = ProfileChoice(label=_("Search profile"), initial=PUBLISHED)
    # By the button that is pressed.
    kind = forms.ChoiceField(choices=RunKind.choices, widget=forms.HiddenInput)
    draft = forms.ModelChoiceField(
        Draft.objects.none(),
        label=_("Documents"),
        required=False,
        empty_label=_("in service"),
        error_messages={"invalid_choice": _("This draft is not open any more.")},
    )

    def __init__(self, evaluation_set: EvaluationSet, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["draft"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Draft.objects.filter(collection=evaluation_set.collection_id, status=Draft.Status.OPEN)
        self.has_draft = field.queryset.exists()


class RunsOfSets(PageAdmin, WholeCollectionAdmin):
    """The part of the sets' admin that runs them."""

    actions = ["run_search", "run_answers"]

    @admin.display(description=_("last search"))
    def last_search(self, evaluation_set: EvaluationSet) -> str:
        return _last_result(evaluation_set, RunKind.SEARCH)

    @admin.display(description=_("last answers"))
    def last_answers(self, evaluation_set: EvaluationSet) -> str:
        return _last_result(evaluation_set, RunKind.ANSWERS)

    def has_run_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.add_evaluationrun")

    @admin.action(description=_("Run search with the profile in force"), permissions=["run"])
    def run_search(self, request: HttpRequest, sets: QuerySet[EvaluationSet]) -> None:
        self._run_all(request, sets, RunKind.SEARCH)

    @admin.action(description=_("Run answers with the profile in force"), permissions=["run"])
    def run_answers(self, request: HttpRequest, sets: QuerySet[EvaluationSet]) -> None:
        self._run_all(request, sets, RunKind.ANSWERS)

    def _run_all(self, request: HttpRequest, sets: QuerySet[EvaluationSet], kind: RunKind) -> None:
        profile = active_profile()
        for evaluation_set in sets:
            self._request_run(request, evaluation_set, profile, kind)

    def _request_run(
        self,
        request: HttpRequest,
        evaluation_set: EvaluationSet,
        profile: NamedProfile,
        kind: str,
        draft: Draft | None = None,
    ) -> EvaluationRun | None:
        """The run, with a message; None, with the reason as a message, when it cannot be requested."""
        if not evaluation_set.questions.measurable(kind).exists():
            self.message_user(request, f"{evaluation_set}: {NOTHING_TO_MEASURE[kind]}", messages.ERROR)
            return None
        try:
            run = queue.request_run(evaluation_set, profile, kind=kind, draft=draft, by=request.user)
        except EvaluationError as error:
            self.message_user(request, str(error), messages.ERROR)
            return None
        self.message_user(request, _t("Run #%d was asked for.") % run.pk, messages.SUCCESS)
        return run

    def runs_context(self, request: HttpRequest, evaluation_set: EvaluationSet) -> dict[str, Any]:
        """What the page of a set shows of its runs."""
        measurable = {kind: evaluation_set.questions.measurable(kind).count() for kind in RunKind}
        metric = request.GET.get("metric", "")
        shown = KIND_OF_MEASURE.get(metric, next((kind for kind in RunKind if measurable[kind]), RunKind.SEARCH))
        measure = measure_of(shown, metric)
        runs = list(evaluation_set.runs.all()[:NEWEST_RUNS])
        return {
            "run_form": RunForm(evaluation_set) if self.has_run_permission(request) else None,
            "run_buttons": [
                (kind, label, measurable[kind])
                for kind, label in (
                    (RunKind.SEARCH, _t("Run search (%d)") % measurable[RunKind.SEARCH]),
                    (RunKind.ANSWERS, _t("Run answers (%d)") % measurable[RunKind.ANSWERS]),
                )
                if measurable[kind]
            ],
            "not_offered": [NOTHING_TO_MEASURE[kind] for kind in RunKind if not measurable[kind]],
            "runs": [(run, documents_badge(run), run_badge(run), result_text(run, metric)) for run in runs],
            "is_live": any(not run.is_finished for run in runs),
            "metric": measure.key,
            "measures": [(kind.label, MEASURES[kind]) for kind in RunKind],
            "chart": trend_chart(evaluation_set, measure),
        }

    def run_view(self, request: HttpRequest, set_id: int) -> HttpResponse:
        """A run of the set with the profile chosen, on the documents chosen."""
        evaluation_set = get_object_or_404(self.get_queryset(request), pk=set_id)
        form = RunForm(evaluation_set, request.POST)
        run = None
        if form.is_valid():
            chosen = form.cleaned_data
            run = self._request_run(request, evaluation_set, chosen["profile"], chosen["kind"], chosen["draft"])
        else:
            problems = " ".join(str(problem) for of_field in form.errors.values() for problem in of_field)
            self.message_user(request, problems, messages.ERROR)
        if run is None:
            return redirect("admin:evaluation_evaluationset_change", set_id)
        return redirect("admin:evaluation_evaluationrun_change", run.pk)


def _last_result(evaluation_set: EvaluationSet, kind: RunKind) -> str:
    run = evaluation_set.runs.filter(kind=kind, draft=None, status=EvaluationRun.Status.DONE).first()
    return f"{run.profile_name}: {result_text(run)}" if run else "–"
