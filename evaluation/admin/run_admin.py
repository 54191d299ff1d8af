"""Admin pages of runs (measurements of an evaluation set): progress, results, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.formats import time_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from core.admin_base import AlwaysShownRelatedFilter, PageAdmin, ReadOnlyAdmin, render_badge, render_job_badge
from evaluation.charts import Drawing, draw_line_chart
from evaluation.figures import format_day_and_month, format_fixed
from evaluation.models import AnswerResult, EvaluationRun, EvaluationSet, QuestionResult, RunKind, Score
from evaluation.runs import queue
from evaluation.runs.agreement import RIGHT_AGREEMENT
from evaluation.runs.results import (
    KIND_OF_MEASURE,
    MEASURES,
    QuestionPair,
    RunComparison,
    RunMeasure,
    compare_runs,
    find_run_measure,
    list_results,
    read_confidence_interval,
)
from evaluation.statistics import Interval
from retrieval.admin.curated import FullyReadableRowsAdmin
from retrieval.search.profiles.profiles import BUILT_IN

MOST_RUNS = 40
MOST_LINES = 6
MOST_PAIRS = 100
# An answer counts as right if it gets at least this share of the points.
RIGHT_EXPECTATIONS = 0.5

_VERDICTS = {-1: _("significantly worse"), 0: _("not significantly different"), 1: _("significantly better")}


def run_badge(run: EvaluationRun) -> SafeString:
    if run.unreliable_reason:
        return render_badge("failed", _t("not to be relied on"))
    if run.status != EvaluationRun.Status.RUNNING:
        return render_job_badge(run)
    progress = '{0} <progress max="100" value="{1}">{1} %</progress> {1} %'
    return render_job_badge(run, format_html(progress, run.get_status_display(), run.progress_percent))


def documents_badge(run: EvaluationRun) -> SafeString | str:
    return "" if run.draft_id is None else render_badge("pending", _t("draft #%d") % run.draft_id)


def interval_text(interval: Interval | None, *, signed: bool = False) -> str:
    if interval is None:
        return "–"
    numbers = [format_fixed(value, 3, signed=signed) for value in (interval.mean, interval.low, interval.high)]
    return f"{numbers[0]} ({numbers[1]} … {numbers[2]})"


def draw_trend_chart(evaluation_set: EvaluationSet, measure: RunMeasure) -> Drawing:
    """Draw a metric of the newest runs on the published documents, with a line for each search profile."""
    done = evaluation_set.runs.filter(
        kind=KIND_OF_MEASURE[measure.key], draft=None, status=EvaluationRun.Status.DONE, unreliable_reason=""
    ).order_by("-pk")[:MOST_RUNS]
    runs = list(reversed(done))
    names = list(dict.fromkeys(run.profile_name for run in reversed(runs)))[:MOST_LINES]
    means = [found.mean if (found := read_confidence_interval(run, measure.key)) else None for run in runs]
    series = {
        name: [mean if run.profile_name == name else None for run, mean in zip(runs, means, strict=True)]
        for name in names
    }
    times = [(run.pk, localtime(run.created_at)) for run in runs]
    labels = [f"#{pk} {format_day_and_month(asked)} {time_format(asked, 'H:i')}" for pk, asked in times]
    links = [reverse("admin:evaluation_evaluationrun_change", args=[run.pk]) for run in runs]
    return draw_line_chart(labels, series, lambda value: format_fixed(value, 3), most=1.0, links=links)


def result_text(run: EvaluationRun, metric: str = "") -> str:
    measure = find_run_measure(run.kind, metric)
    found = read_confidence_interval(run, measure.key)
    return f"{measure.label} {interval_text(found)}" if found is not None else "–"


def describe_ranks(result: QuestionResult) -> str:
    relevant = [one for one in result.expected if one["grade"] > 0]
    ranks = sorted(one["rank"] for one in relevant if one["rank"] is not None)
    parts = [f"#{rank}" for rank in dict.fromkeys(ranks)]
    if gone := sum(not one["resolved"] for one in relevant):
        parts.append(_t("gone: %d") % gone)
    if missing := sum(one["rank"] is None and one["resolved"] for one in relevant):
        parts.append(_t("not found: %d") % missing)
    return ", ".join(parts)


def build_explanation_address(question: str, first: EvaluationRun, second: EvaluationRun) -> str:
    """Return the address of a page that shows the searches of a question with both runs' profiles.

    Return "" if a profile or the collection was deleted.
    """
    sides = [_get_profile_parameter(first), _get_profile_parameter(second)]
    collection = second.evaluation_set.collection if second.draft is None else second.draft.working_copy
    if collection is None or not all(sides):
        return ""
    parameters = {"question": question, "a": sides[0], "b": sides[1], "collection": collection.slug}
    return f"{reverse('admin:retrieval_searchprofile_playground')}?{urlencode(parameters)}"


def _get_profile_parameter(run: EvaluationRun) -> str:
    if run.profile_version_id is not None:
        return str(run.profile_version_id)
    return BUILT_IN if run.profile_name.startswith(BUILT_IN) else ""


def comparison_context(comparison: RunComparison, request: HttpRequest) -> dict[str, object]:
    run, baseline = comparison.run, comparison.baseline
    may_explain = request.user.has_perm("retrieval.view_searchprofile")

    def rows(pairs: Sequence[QuestionPair]) -> list[tuple[QuestionPair, str]]:
        return [
            (pair, build_explanation_address(pair.text, baseline, run) if may_explain else "")
            for pair in pairs[:MOST_PAIRS]
        ]

    return {
        "comparison": comparison,
        "metric_name": find_run_measure(run.kind, comparison.metric).label,
        "pairs_template": f"admin/evaluation/evaluationrun/_{run.kind}_pairs.html",
        "differences": [
            (
                measure.label,
                read_confidence_interval(baseline, measure.key),
                read_confidence_interval(run, measure.key),
                comparison.differences[measure.key],
                _VERDICTS[comparison.beyond_chance[measure.key]],
            )
            for measure in MEASURES[run.kind]
            if measure.key in comparison.differences
        ],
        "groups": [
            (_t("Worse"), "worse", rows(comparison.worse), len(comparison.worse)),
            (_t("Better"), "better", rows(comparison.better), len(comparison.better)),
        ],
    }


def list_results_worst_first(run: EvaluationRun, *, wrong_only: bool = False) -> QuerySet[Any]:
    """Return the run's results, the worst first. If ``wrong_only``, right answers are left out."""
    results = list_results(run)
    if run.kind == RunKind.SEARCH:
        return results.order_by("ndcg", "reciprocal_rank", "pk")
    if wrong_only:
        results = results.filter(Q(agreement__lt=RIGHT_AGREEMENT) | Q(expectations__lt=RIGHT_EXPECTATIONS))
    by_measure = (F(name).asc(nulls_last=True) for name in ("agreement", "expectations"))
    return results.order_by(*by_measure, "pk")


def verdict_badge(result: AnswerResult) -> SafeString:
    verdicts = [] if result.agreement is None else [result.agreement >= RIGHT_AGREEMENT]
    if result.expectations is not None:
        verdicts.append(result.expectations >= RIGHT_EXPECTATIONS)
    if not verdicts:
        return render_badge("pending", _t("not measured"))
    if all(verdicts):
        return render_badge("ready", _t("right"))
    if result.expects_refusal:
        return render_badge("failed", _t("wrong: answered"))
    return render_badge("failed", _t("wrong: refused") if result.refused else _t("wrong"))


def metric_label(metric: str) -> str:
    return str(dict(Score.Metric.choices).get(metric, metric))


RESULTS_PER_PAGE = 50
MOST_OTHERS = 20


@admin.register(EvaluationRun)
class EvaluationRunAdmin(PageAdmin, ReadOnlyAdmin, FullyReadableRowsAdmin):
    collection_path = "evaluation_set__collection"
    list_display = [
        "name",
        "evaluation_set",
        "kind",
        "profile_name",
        "documents",
        "status_badge",
        "result",
        "questions",
        "created_at",
    ]
    list_filter = [
        ("evaluation_set", AlwaysShownRelatedFilter),
        "kind",
        "status",
        "profile_name",
    ]
    list_select_related = ["evaluation_set"]
    list_per_page = 50
    search_fields = ["profile_name", "evaluation_set__name"]
    actions = ["cancel_runs"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    @admin.display(description=_("run"), ordering="pk")
    def name(self, run: EvaluationRun) -> str:
        return f"#{run.pk}"

    @admin.display(description=_("documents"), ordering="draft")
    def documents(self, run: EvaluationRun) -> SafeString | str:
        return documents_badge(run) or _t("in service")

    @admin.display(description=_("status"), ordering="status")
    def status_badge(self, run: EvaluationRun) -> SafeString:
        live = SafeString("" if run.is_finished else " data-live")
        return format_html('<span id="state-{}"{}>{}</span>', run.pk, live, run_badge(run))

    @admin.display(description=_("result"))
    def result(self, run: EvaluationRun) -> str:
        return result_text(run)

    @admin.display(description=_("questions"))
    def questions(self, run: EvaluationRun) -> str:
        return f"{run.asked} / {run.total}"

    @admin.action(description=_("Cancel"), permissions=["act"])
    def cancel_runs(self, request: HttpRequest, runs: QuerySet[EvaluationRun]) -> None:
        number = queue.cancel_runs(EvaluationRun.objects.filter(pk__in=runs.values("pk")))
        message = ngettext("%d run was cancelled.", "%d runs were cancelled.", number)
        self.message_user(request, message % number, messages.SUCCESS)

    def get_urls(self) -> list[URLPattern]:
        compared = self.admin_site.admin_view(self.compare_view)
        return [
            path("<int:run_id>/compare/<int:baseline_id>/", compared, name="evaluation_evaluationrun_compare"),
            *super().get_urls(),
        ]

    def get_fields(self, request: HttpRequest, obj: EvaluationRun | None = None) -> list[Any]:
        return []

    def page_context(self, request: HttpRequest, obj: EvaluationRun) -> dict[str, object]:
        run, means = obj, obj.summary.get("metrics", {})
        wrong_only = run.kind == RunKind.ANSWERS and "wrong" in request.GET
        page = Paginator(list_results_worst_first(run, wrong_only=wrong_only), RESULTS_PER_PAGE).get_page(
            request.GET.get("p")
        )
        may_explain = request.user.has_perm("retrieval.view_searchprofile")
        others = EvaluationRun.objects.filter(
            Q(draft=None) | Q(draft=run.draft_id),
            evaluation_set=run.evaluation_set,
            kind=run.kind,
            status=EvaluationRun.Status.DONE,
        )
        return {
            "run": run,
            "is_live": not run.is_finished,
            "metrics": [
                (
                    measure.label,
                    read_confidence_interval(run, measure.key),
                    means[measure.key]["questions"] if measure.key in means else 0,
                )
                for measure in (MEASURES[run.kind] if run.summary else ())
            ],
            "page": page,
            "rows": [
                (result, build_explanation_address(result.text, run, run) if may_explain else "") for result in page
            ],
            "results_template": f"admin/evaluation/evaluationrun/_{run.kind}_results.html",
            "wrong_only": wrong_only,
            "wrong_count": list_results_worst_first(run, wrong_only=True).count() if run.kind == RunKind.ANSWERS else 0,
            "others": others.exclude(pk=run.pk)[:MOST_OTHERS] if run.status == EvaluationRun.Status.DONE else (),
        }

    def compare_view(self, request: HttpRequest, run_id: int, baseline_id: int) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        runs = self.get_queryset(request).select_related("evaluation_set__collection", "draft__working_copy")
        run, baseline = (get_object_or_404(runs, pk=pk) for pk in (run_id, baseline_id))
        if (run.evaluation_set_id, run.kind) != (baseline.evaluation_set_id, baseline.kind):
            raise Http404
        comparison = compare_runs(run, baseline, request.GET.get("metric", ""))
        context = {**comparison_context(comparison, request), "measures": MEASURES[run.kind]}
        return self.render_page(request, "evaluationrun/compare", _t("Compare runs"), context)
