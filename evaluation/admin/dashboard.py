"""The admin's dashboard: figures of the answers, the worst answers, and what the documents lack."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.core.cache import caches
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from evaluation.admin.dashboard_figures import (
    answer_rows,
    day_charts,
    heading,
    kinds,
    make_case_address,
    score_chart,
    score_rows,
    tiles,
)
from evaluation.charts import Markup
from evaluation.dashboard.figures import KEPT_SECONDS, Figures, figures
from evaluation.dashboard.gaps import MOST_QUESTIONS, find_gaps
from evaluation.dashboard.lists import (
    UNHELPFUL,
    AnswerSelection,
    documents_never_cited,
    low_scores,
    rated_answers,
    selection_of,
)
from evaluation.dashboard.scope import PERIODS, DashboardScope, scope_of
from evaluation.models import Dashboard
from retrieval import sandbox
from retrieval.admin.base import PageAdmin, ReadOnlyAdmin
from retrieval.dense.calibration import uncalibrated_embedder
from retrieval.models import Collection
from retrieval.observability.record import tell

# Of each list the dashboard shows the beginning.
SHOWN = 5
ROWS_PER_PAGE = 25
DOCUMENTS_PER_PAGE = 100


@admin.register(Dashboard)
class DashboardAdmin(PageAdmin, ReadOnlyAdmin):
    """Pages of figures for users who may view answers."""

    class Media:
        css = {"all": ["retrieval/admin.css", "evaluation/charts.css", "evaluation/dashboard.css"]}

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("chat.view_answer")

    def get_urls(self) -> list[URLPattern]:
        """Instead of the pages of a model, which has no rows of its own here."""
        pages = {"": "changelist", "answers/": "answers", "gaps/": "gaps", "documents/": "documents"}
        allowed = permission_required("chat.view_answer", raise_exception=True)
        return [
            path(
                route,
                self.admin_site.admin_view(allowed(getattr(self, f"{name}_view"))),
                name=f"evaluation_dashboard_{name}",
            )
            for route, name in pages.items()
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        scope = scope_of(request.GET, request.user)
        counted = figures(scope)
        scores = counted.scores
        ungrounded = low_scores(scope, AnswerSelection("groundedness"))
        never_cited = documents_never_cited(scope)
        found_gaps = find_gaps(scope, patiently=False)
        context = {
            "as_of": counted.as_of,
            "tiles": tiles(scope, counted.total),
            "charts": _day_charts(scope, counted),
            "score_charts": [score_chart(scope, found) for found in scores],
            "score_errors": sum(found.errors for found in scores),
            "errors_address": f"{reverse('admin:evaluation_judgement_changelist')}?status__exact=failed",
            "worst": [
                (
                    _("Not helpful"),
                    scope.address("answers", kind=UNHELPFUL),
                    answer_rows(list(rated_answers(scope, UNHELPFUL)[:SHOWN])),
                    _("Nobody marked an answer of this period as not helpful."),
                ),
                (
                    _("Least grounded"),
                    scope.address("answers", kind="groundedness"),
                    score_rows(list(ungrounded[:SHOWN])),
                    _("No answer of this period has a low groundedness.")
                    if any(found.metric == "groundedness" and found.measured for found in scores)
                    else _("No answer was judged in this period, so groundedness is unknown."),
                ),
            ],
            "found": found_gaps,
            "shown_gaps": found_gaps.gaps[:SHOWN],
            "gaps_address": scope.address("gaps"),
            "never_cited": list(never_cited[:SHOWN]),
            "never_cited_count": never_cited.count(),
            "documents_address": scope.address("documents"),
            **(extra_context or {}),
        }
        return self._page(request, "dashboard", _("Dashboard"), scope, context)

    def answers_view(self, request: HttpRequest) -> HttpResponse:
        """Bad answers of one kind, each with links to what can be corrected."""
        scope, selection = scope_of(request.GET, request.user), selection_of(request.GET)
        found: Any = low_scores(scope, selection) if selection.is_metric else rated_answers(scope, selection.kind)
        page = Paginator(found, ROWS_PER_PAGE).get_page(request.GET.get("p"))
        rows = score_rows(list(page)) if selection.is_metric else answer_rows(list(page))
        kept = {name: request.GET[name] for name in ("kind", "judge", "low", "high") if name in request.GET}
        context = {"rows": rows, "page": page, "kinds": kinds(scope, selection), "kept": kept}
        return self._page(request, "dashboard_answers", heading(selection), scope, context)

    def gaps_view(self, request: HttpRequest) -> HttpResponse:
        scope = scope_of(request.GET, request.user)
        context = {"found": find_gaps(scope), "most_questions": MOST_QUESTIONS}
        return self._page(request, "dashboard_gaps", _("Gaps in the documents"), scope, context)

    def documents_view(self, request: HttpRequest) -> HttpResponse:
        if not request.user.has_perm("retrieval.view_document"):
            raise PermissionDenied
        scope = scope_of(request.GET, request.user)
        page = Paginator(documents_never_cited(scope), DOCUMENTS_PER_PAGE).get_page(request.GET.get("p"))
        return self._page(request, "dashboard_documents", _("Documents never cited"), scope, {"page": page})

    def _page(
        self, request: HttpRequest, template: str, title: str, scope: DashboardScope, context: dict[str, Any]
    ) -> HttpResponse:
        if template != "dashboard_documents":
            tell("conversation.listed")
        shared = {
            "scope": scope,
            "periods": PERIODS,
            "collections": Collection.objects.readable_by(request.user).in_service(),
            "zone": timezone.get_current_timezone_name(),
            "dashboard_address": scope.address(),
            "missing_guards": ", ".join(sandbox.state().missing_guards),
            "sandbox_required": settings.SANDBOX_REQUIRED,
            "uncalibrated": uncalibrated_embedder(),
            "make_case_address": make_case_address(request.user),
            "may_see_documents": request.user.has_perm("retrieval.view_document"),
        }
        return self.render_page(request, template, title, {**shared, **context})


def _day_charts(scope: DashboardScope, counted: Figures) -> list[Markup]:
    """The charts of the days, drawn once as long as their figures are kept."""
    if counted.as_of == scope.until:
        return day_charts(scope, counted.days)
    key = f"charts:{counted.as_of.timestamp()}:{scope.days}:{scope.collection and scope.collection.pk}:{get_language()}"
    drawn = caches["process"].get_or_set(key, lambda: day_charts(scope, counted.days), KEPT_SECONDS)
    return drawn or day_charts(scope, counted.days)
