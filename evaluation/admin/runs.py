"""Runs of evaluation sets: their progress, their results, and how two of them differ."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from evaluation.admin.run_presentation import (
    STYLES,
    comparison_context,
    documents_badge,
    explanation_address,
    judged_rows,
    metric_chart,
    result_text,
    run_badge,
    worst_first,
)
from evaluation.models import EvaluationRun, RunKind
from evaluation.runs import queue
from evaluation.runs.measures import MEASURES
from evaluation.runs.results import compare
from retrieval.admin.base import ConditionFilter, PageAdmin, ReadOnlyAdmin
from retrieval.admin.rights import OpenRowsFilter, WholeCollectionAdmin

RESULTS_PER_PAGE = 50
# Runs of the same set that a run can be compared with by a click.
MOST_OTHERS = 20


class OfDraft(ConditionFilter):
    title = _("documents")
    parameter_name = "documents"
    conditions = {"service": (_("in service"), Q(draft=None)), "draft": (_("of a draft"), ~Q(draft=None))}


@admin.register(EvaluationRun)
class EvaluationRunAdmin(PageAdmin, ReadOnlyAdmin, WholeCollectionAdmin):
    collection_path = "evaluation_set__collection"
    list_display = [
        "name",
        "evaluation_set",
        "kind",
        "profile_name",
        "documents",
        "trigger",
        "state",
        "result",
        "questions",
        "created_at",
    ]
    list_filter = [
        ("evaluation_set", OpenRowsFilter),
        "kind",
        "status",
        "trigger",
        "profile_name",
        OfDraft,
    ]
    list_select_related = ["evaluation_set"]
    list_per_page = 50
    search_fields = ["profile_name", "evaluation_set__name"]
    actions = ["compare_two", "cancel_runs"]
    change_form_template = "admin/evaluation/evaluationrun/change_form.html"

    class Media:
        css = {"all": STYLES}
        js = ["retrieval/live.js"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.change_evaluationrun")

    # The list --------------------------------------------------------------------------------------------------------

    @admin.display(description=_("run"), ordering="pk")
    def name(self, run: EvaluationRun) -> str:
        return f"#{run.pk}"

    @admin.display(description=_("documents"), ordering="draft")
    def documents(self, run: EvaluationRun) -> SafeString | str:
        return documents_badge(run) or _t("in service")

    @admin.display(description=_("status"), ordering="status")
    def state(self, run: EvaluationRun) -> SafeString:
        return format_html('<span id="state-{}"{}>{}</span>', run.pk, _live(run), run_badge(run))

    @admin.display(description=_("result"))
    def result(self, run: EvaluationRun) -> str:
        return result_text(run)

    @admin.display(description=_("questions"))
    def questions(self, run: EvaluationRun) -> str:
        return f"{run.asked} / {run.total}"

    @admin.action(description=_("Compare two runs"), permissions=["view"])
    def compare_two(self, request: HttpRequest, runs: QuerySet[EvaluationRun]) -> HttpResponse | None:
        chosen = list(runs.order_by("pk"))
        if len(chosen) != 2 or not _are_comparable(*chosen):
            self.message_user(request, _t("Choose two runs of the same set and of the same kind."), messages.ERROR)
            return None
        return HttpResponseRedirect(_comparison_address(chosen[1], chosen[0]))

    @admin.action(description=_("Cancel"), permissions=["cancel"])
    def cancel_runs(self, request: HttpRequest, runs: QuerySet[EvaluationRun]) -> None:
        number = queue.cancel(EvaluationRun.objects.filter(pk__in=runs.values("pk")))
        message = ngettext("%d run was cancelled.", "%d runs were cancelled.", number)
        self.message_user(request, message % number, messages.SUCCESS)

    # One run ---------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        compared = self.admin_site.admin_view(self.compare_view)
        return [
            path("<int:run_id>/compare/<int:baseline_id>/", compared, name="evaluation_evaluationrun_compare"),
            *super().get_urls(),
        ]

    def get_fields(self, request: HttpRequest, obj: EvaluationRun | None = None) -> list[Any]:
        return []

    def page_context(self, request: HttpRequest, obj: EvaluationRun) -> dict[str, Any]:
        run = obj
        wrong_only = run.kind == RunKind.ANSWERS and "wrong" in request.GET
        page = Paginator(worst_first(run, wrong_only=wrong_only), RESULTS_PER_PAGE).get_page(request.GET.get("p"))
        may_explain = request.user.has_perm("retrieval.view_searchprofile")
        others = EvaluationRun.objects.filter(
            # Those in service, and of a draft also its own.
            Q(draft=None) | Q(draft=run.draft_id),
            evaluation_set=run.evaluation_set,
            kind=run.kind,
            status=EvaluationRun.Status.DONE,
        )
        return {
            "run": run,
            "state": run_badge(run),
            "is_live": not run.is_finished,
            "chart": metric_chart(run) if run.summary else "",
            "page": page,
            "rows": [(result, explanation_address(result.text, run, run) if may_explain else "") for result in page],
            "results_template": f"admin/evaluation/evaluationrun/_{run.kind}_results.html",
            "judged": judged_rows(run.summary),
            "wrong_only": wrong_only,
            "wrong_count": worst_first(run, wrong_only=True).count() if run.kind == RunKind.ANSWERS else 0,
            "others": [
                (other, documents_badge(other), result_text(other), _comparison_address(run, other))
                for other in others.exclude(pk=run.pk)[:MOST_OTHERS]
            ]
            if run.status == EvaluationRun.Status.DONE
            else [],
        }

    def compare_view(self, request: HttpRequest, run_id: int, baseline_id: int) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        runs = self.get_queryset(request).select_related("evaluation_set__collection", "draft__working_copy")
        run, baseline = (get_object_or_404(runs, pk=pk) for pk in (run_id, baseline_id))
        if not _are_comparable(run, baseline):
            raise Http404
        comparison = compare(run, baseline, request.GET.get("metric", ""))
        context = {**comparison_context(comparison, request), "measures": MEASURES[run.kind]}
        return self.render_page(request, "evaluationrun/compare", _t("Compare runs"), context)


def _are_comparable(run: EvaluationRun, other: EvaluationRun) -> bool:
    return run.evaluation_set_id == other.evaluation_set_id and run.kind == other.kind


def _comparison_address(run: EvaluationRun, baseline: EvaluationRun) -> str:
    return reverse("admin:evaluation_evaluationrun_compare", args=[run.pk, baseline.pk])


def _live(run: EvaluationRun) -> SafeString:
    return SafeString("" if run.is_finished else " data-live")
