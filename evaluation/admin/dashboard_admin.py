from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.debugging.follow_up import UsedDocument, list_answer_documents
from chat.models import Answer
from core.admin_base import PageAdmin, ReadOnlyAdmin
from core.audit_signal import record_event
from evaluation.charts import Drawing, draw_line_chart, draw_stacked_bars
from evaluation.dashboard.dashboard_figures import (
    BINS,
    EDGES,
    Activity,
    ScoreDistribution,
    compute_activity,
    compute_distributions,
)
from evaluation.dashboard.gaps import MOST_QUESTIONS, find_knowledge_gaps, find_unanswered_questions
from evaluation.dashboard.scope import PERIODS, DashboardScope, find_low_groundedness_scores, parse_scope
from evaluation.figures import format_day_and_month, format_fixed, format_percent, format_whole_number
from evaluation.models import Dashboard, Judgement, Score
from retrieval.documents import sandbox
from retrieval.index.closeness import find_uncalibrated_embedder
from retrieval.models import Collection

SHOWN = 5


@admin.register(Dashboard)
class DashboardAdmin(PageAdmin, ReadOnlyAdmin):
    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("chat.view_answer")

    def get_urls(self) -> list[URLPattern]:
        allowed = permission_required("chat.view_answer", raise_exception=True)
        return [
            path(route, self.admin_site.admin_view(allowed(view)), name=f"evaluation_dashboard_{name}")
            for route, view, name in (("", self.changelist_view, "changelist"), ("gaps/", self.gaps_view, "gaps"))
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        scope = parse_scope(request.GET, request.user)
        (days, total), scores = compute_activity(scope), compute_distributions(scope)
        latest = scope.answers().select_related("feedback").order_by("-completed_at", "pk")
        context = {
            "total": total,
            "charts": draw_day_charts(scope, days),
            "score_charts": [(found, draw_score_chart(scope, found)) for found in scores],
            "score_errors": sum(found.errors for found in scores),
            "unhelpful": _make_rows(latest.filter(feedback__helpful=False)[:SHOWN]),
            "refused": _make_rows(latest.filter(refused=True)[:SHOWN]),
            "ungrounded": _make_score_rows(find_low_groundedness_scores(scope)[:SHOWN]),
            "is_judged": any(found.metric == Score.Metric.GROUNDEDNESS and found.measured_count for found in scores),
            "lists": {
                "all": scope.build_answer_list_address(),
                "unhelpful": scope.build_answer_list_address(feedback__helpful__exact=0),
                "refused": scope.build_answer_list_address(refused__exact=1),
                "completed": scope.build_answer_list_address(status__exact=Answer.Status.COMPLETED.value),
                "degraded": scope.build_answer_list_address(degraded="yes"),
                "ungrounded": scope.build_low_score_address(Score.Metric.GROUNDEDNESS, Judgement.Judge.OFFLINE),
                "gaps": scope.address("gaps"),
            },
            "unanswered": find_unanswered_questions(scope)[1],
            **(extra_context or {}),
        }
        return self._render(request, "dashboard", _("Dashboard"), scope, context)

    def gaps_view(self, request: HttpRequest) -> HttpResponse:
        scope = parse_scope(request.GET, request.user)
        context = {"found": find_knowledge_gaps(scope), "most_questions": MOST_QUESTIONS}
        return self._render(request, "dashboard_gaps", _("Gaps in the documents"), scope, context)

    def _render(
        self, request: HttpRequest, template: str, title: str, scope: DashboardScope, context: dict[str, object]
    ) -> HttpResponse:
        record_event("conversation.listed")
        shared = {
            "scope": scope,
            "periods": PERIODS,
            "collections": Collection.objects.readable_by(request.user).in_service(),
            "zone": timezone.get_current_timezone_name(),
            "dashboard_address": scope.address(),
            "missing_guards": ", ".join(sandbox.read_sandbox_state().missing_guards),
            "sandbox_required": settings.SANDBOX_REQUIRED,
            "uncalibrated": find_uncalibrated_embedder(),
            "may_see_documents": request.user.has_perm("retrieval.view_document"),
        }
        return self.render_page(request, template, title, {**shared, **context})


def draw_day_charts(scope: DashboardScope, days: Mapping[date, Activity]) -> dict[str, Drawing]:
    labels = [format_day_and_month(day) for day in days]

    def values(name: str) -> list[float | None]:
        return [getattr(day, name) for day in days.values()]

    def links(**lookups: object) -> list[str]:
        return [scope.build_answer_list_address(day, **lookups) for day in days]

    outcomes = {
        _("answered"): values("answered"),
        _("no answer in the documents"): values("refused"),
        _("failed"): values("failed"),
        _("stopped"): values("stopped"),
    }
    latencies = {
        _("95 of 100 answers, last word"): values("p95_seconds"),
        _("half of the answers, last word"): values("p50_seconds"),
        _("half of the answers, first word"): values("first_token_p50_seconds"),
    }
    return {
        "questions": draw_stacked_bars(labels, outcomes, format_whole_number, links=links()),
        "helpful": draw_line_chart(
            labels,
            {_("helpful"): values("helpful_rate")},
            lambda share: format_percent(share, 0),
            most=1,
            links=links(feedback__helpful__exact=0),
        ),
        "latency": draw_line_chart(
            labels,
            latencies,
            lambda value: format_fixed(value, 2),
            links=links(status__exact=Answer.Status.COMPLETED.value),
        ),
    }


def draw_score_chart(scope: DashboardScope, found: ScoreDistribution) -> Drawing:
    labels = [f"{format_fixed(low, 1)} – {format_fixed(high, 1)}" for low, high in pairwise(EDGES)]
    low = sum(high <= found.threshold for high in EDGES[1:]) if found.threshold is not None else 0
    links = [scope.build_low_score_address(found.metric, found.judge)] * low + [None] * (BINS - low)
    return draw_stacked_bars(labels, {_("answers"): found.counts}, format_whole_number, links=links, low=low)


Row = tuple[Answer, Score | None, list[UsedDocument]]


def _make_rows(answers: QuerySet[Answer]) -> list[Row]:
    documents = list_answer_documents(answers)
    return [(answer, None, documents[answer.pk]) for answer in answers]


def _make_score_rows(scores: QuerySet[Score]) -> list[Row]:
    documents = list_answer_documents([score.judgement.answer for score in scores])
    return [(score.judgement.answer, score, documents[score.judgement.answer_id]) for score in scores]
