"""The admin's dashboard: figures of the answers, the worst answers, and what the documents lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chat.debugging.follow_up import DocumentBehind, documents_behind, trace_address
from chat.models import Answer, Feedback
from evaluation.charts import Caption, Series, line_chart, stacked_bars
from evaluation.dashboard.dashboard_figures import BINS, EDGES, Activity, Distribution, activity, distributions
from evaluation.dashboard.gaps import MOST_QUESTIONS, find_gaps, unanswered
from evaluation.dashboard.scope import (
    PERIODS,
    UNANSWERED,
    UNHELPFUL,
    AnswerSelection,
    DashboardScope,
    low_scores,
    rated_answers,
    scope_of,
    selection_of,
)
from evaluation.figures import day_and_month, fixed, whole
from evaluation.models import Dashboard, Judgement, Score
from retrieval.admin.base import PageAdmin, ReadOnlyAdmin
from retrieval.documents import sandbox
from retrieval.index.closeness import uncalibrated_embedder
from retrieval.infrastructure.record import tell
from retrieval.models import Collection

# Of each list the dashboard shows the beginning.
SHOWN = 5
ROWS_PER_PAGE = 25


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
        pages = {"": "changelist", "answers/": "answers", "gaps/": "gaps"}
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
        (days, total), scores = activity(scope), distributions(scope)
        ungrounded = low_scores(scope, AnswerSelection("groundedness"))
        context = {
            "tiles": tiles(scope, total),
            "charts": day_charts(scope, days),
            "score_charts": [score_chart(scope, found) for found in scores],
            "score_errors": sum(found.errors for found in scores),
            "errors_address": f"{reverse('admin:evaluation_judgement_changelist')}?status__exact=failed",
            "worst": [
                (
                    _("Not helpful"),
                    scope.address("answers", kind=UNHELPFUL),
                    answer_rows(list(rated_answers(scope, UNHELPFUL)[:SHOWN])),
                    _("Nobody rated an answer of this period as not helpful."),
                ),
                (
                    _("Refused"),
                    scope.address("answers", kind=UNANSWERED),
                    answer_rows(list(rated_answers(scope, UNANSWERED)[:SHOWN])),
                    _("No question of this period was refused."),
                ),
                (
                    _("Least supported by the documents"),
                    scope.address("answers", kind="groundedness"),
                    score_rows(list(ungrounded[:SHOWN])),
                    _("No answer of this period has a low groundedness.")
                    if any(found.metric == "groundedness" and found.measured for found in scores)
                    else _("No answer was judged in this period, so groundedness is unknown."),
                ),
            ],
            "gaps_address": scope.address("gaps"),
            "unanswered": unanswered(scope)[1],
            **(extra_context or {}),
        }
        return self._page(request, "dashboard", _("Dashboard"), scope, context)

    def answers_view(self, request: HttpRequest) -> HttpResponse:
        """Bad answers of one kind, each with links to what can be corrected."""
        scope, selection = scope_of(request.GET, request.user), selection_of(request.GET)
        found: Any = low_scores(scope, selection) if selection.is_metric else rated_answers(scope, selection.kind)
        page = Paginator(found, ROWS_PER_PAGE).get_page(request.GET.get("p"))
        rows = score_rows(list(page)) if selection.is_metric else answer_rows(list(page))
        kept = {name: request.GET[name] for name in ("kind", "judge") if name in request.GET}
        context = {"rows": rows, "page": page, "kinds": kinds(scope, selection), "kept": kept}
        return self._page(request, "dashboard_answers", heading(selection), scope, context)

    def gaps_view(self, request: HttpRequest) -> HttpResponse:
        scope = scope_of(request.GET, request.user)
        context = {"found": find_gaps(scope), "most_questions": MOST_QUESTIONS}
        return self._page(request, "dashboard_gaps", _("Gaps in the documents"), scope, context)

    def _page(
        self, request: HttpRequest, template: str, title: str, scope: DashboardScope, context: dict[str, Any]
    ) -> HttpResponse:
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


_METRICS = (
    (Score.Metric.GROUNDEDNESS, Judgement.Judge.OFFLINE),
    (Score.Metric.ANSWER_RELEVANCY, Judgement.Judge.OFFLINE),
    (Score.Metric.FAITHFULNESS, Judgement.Judge.MODEL),
    (Score.Metric.ANSWER_RELEVANCY, Judgement.Judge.MODEL),
)


def day_charts(scope: DashboardScope, days: Mapping[date, Activity]) -> list[SafeString]:
    """What happened on each day: questions and their outcome, helpful rate, latency."""
    labels = [day_and_month(day) for day in days]

    def series(divisor: float = 1, **named: str) -> list[Series]:
        read = {name: [getattr(day, field) for day in days.values()] for field, name in named.items()}
        return [
            Series(name, [None if one is None else one / divisor for one in values]) for name, values in read.items()
        ]

    def links(**lookups: object) -> list[str]:
        return [scope.answer_list(day, **lookups) for day in days]

    return [
        stacked_bars(
            _caption(
                "questions",
                _("Questions a day"),
                _("Questions by the day on which their answer was finished, and by outcome."),
                _("No question was answered in this period."),
            ),
            labels,
            series(
                answered=_("answered"),
                refused=_("no answer in the documents"),
                failed=_("failed"),
                stopped=_("stopped"),
            ),
            number=whole,
            links=links(),
        ),
        line_chart(
            _caption(
                "helpful",
                _("Helpful rate"),
                _("Share of the rated answers that were rated as helpful. Days without a rating are left out."),
                _("Nobody rated an answer in this period, so the rate is unknown."),
            ),
            labels,
            series(helpful_rate=_("helpful")),
            most=1,
            number=percent,
            links=links(feedback__helpful__exact=0),
        ),
        line_chart(
            _caption(
                "latency",
                _("Time to an answer, in seconds"),
                _(
                    "From the question to the last word, for half of the day's answers (p50) and for 95 of 100 (p95). "
                    "Answers that repeat an earlier one, were stopped or failed are left out."
                ),
                _("No answer was written in this period, so the time is unknown."),
            ),
            labels,
            series(
                1000,
                p95_ms=_("p95, last word"),
                p50_ms=_("p50, last word"),
                first_token_p50_ms=_("p50, first word"),
            ),
            number=decimal,
            links=links(status__exact=Answer.Status.COMPLETED.value),
        ),
    ]


def score_chart(scope: DashboardScope, found: Distribution) -> SafeString:
    """The distribution of one metric by one judge."""
    description = _(
        "%(measured)s answers by their score, from 0 (bad) to 1 (good), given in this period by: %(judge)s. "
        "Scores below %(threshold)s ask for a look."
    ) if found.threshold is not None else _(
        "%(measured)s answers by their score, from 0 (bad) to 1 (good), given in this period by: %(judge)s."
    )  # fmt: skip
    values = {
        "measured": whole(found.measured),
        "judge": found.judge.label,
        "threshold": decimal(found.threshold or 0.0),
    }
    caption = _caption(
        f"{found.metric.value.replace('_', '-')}-{found.judge.value}",
        f"{str(found.metric.label).capitalize()} ({found.judge.label})",
        description % values,
        _("Every judgement of this period failed: there are errors and no scores."),
        axis=_("score"),
    )
    bins = [f"{decimal(low)} – {decimal(high)}" for low, high in pairwise(EDGES)]
    low = sum(high <= found.threshold for high in EDGES[1:]) if found.threshold is not None else 0
    # Each low bin leads to the list of all low scores.
    links = [scope.address("answers", kind=found.metric.value, judge=found.judge.value)] * low + [None] * (BINS - low)
    return stacked_bars(caption, bins, [Series(_("answers"), found.counts)], number=whole, links=links, low=low)


def percent(share: float | None) -> str:
    """The share in percent; a dash when it is unknown."""
    if share is None:
        return "–"
    value = round(100 * share, 1)
    return f"{fixed(value, 0 if value % 1 == 0 else 1)} %"


def decimal(value: float | None) -> str:
    """The number with at most one digit after the point, two below 1; a dash when it is unknown."""
    if value is None:
        return "–"
    rounded = round(value, 1 if value >= 1 else 2)
    digits = next(digits for digits in (0, 1, 2) if round(rounded, digits) == rounded)
    return fixed(rounded, digits)


def _caption(name: str, title: str, description: str, empty: str, axis: str = "") -> Caption:
    return Caption(
        name, title, description, axis=axis or _("Day"), as_table=_("The same numbers as a table"), empty=empty
    )


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A bad answer, and where to correct it."""

    answer: Answer
    score: Score | None
    documents: list[DocumentBehind]

    @property
    def trace_address(self) -> str:
        return trace_address(self.answer)

    @property
    def feedback(self) -> Feedback | None:
        return getattr(self.answer, "feedback", None)


def answer_rows(answers: Sequence[Answer]) -> list[AnswerRow]:
    documents = documents_behind(answers)
    return [AnswerRow(answer, None, documents[answer.pk]) for answer in answers]


def score_rows(scores: Sequence[Score]) -> list[AnswerRow]:
    documents = documents_behind([score.judgement.answer for score in scores])
    return [AnswerRow(score.judgement.answer, score, documents[score.judgement.answer_id]) for score in scores]


def tiles(scope: DashboardScope, total: Activity) -> list[tuple[str, str, str, str]]:
    """The figures of the whole period: name, figure, note, and the list behind it. An unknown figure is a dash."""
    return [
        (_("Questions"), whole(total.asked), _("%s failed") % whole(total.failed), scope.answer_list()),
        (
            _("Helpful rate"),
            percent(total.helpful_rate),
            _("of %s answers that were marked") % whole(total.rated) if total.rated else _("nobody marked an answer"),
            scope.address("answers", kind=UNHELPFUL),
        ),
        (
            _("Refusals"),
            percent(total.refusal_rate),
            _("%s without an answer in the documents") % whole(total.refused),
            scope.address("answers", kind=UNANSWERED),
        ),
        (
            _("Time to an answer"),
            _("%s s") % decimal(total.p50_ms / 1000) if total.p50_ms is not None else "–",
            _("p50; p95 is %s s") % decimal(total.p95_ms / 1000)
            if total.p95_ms is not None
            else _("no answer was written"),
            scope.answer_list(status__exact=Answer.Status.COMPLETED.value),
        ),
        (
            _("Degraded searches"),
            whole(total.degraded),
            _("%s of the questions") % percent(total.degraded_rate) if total.asked else _("no question was asked"),
            scope.answer_list(degraded="yes"),
        ),
    ]


def kinds(scope: DashboardScope, selection: AnswerSelection) -> list[tuple[str, str, bool]]:
    """The lists of bad answers there are: name, address, and whether it is the one that is shown."""
    offered = [
        (_("not helpful"), AnswerSelection(UNHELPFUL)),
        (_("no answer in the documents"), AnswerSelection(UNANSWERED)),
        *(
            (
                _("low %(metric)s (%(judge)s)") % {"metric": metric.label, "judge": judge.label},
                AnswerSelection(metric, judge),
            )
            for metric, judge in _METRICS
        ),
    ]
    return [
        (
            name,
            scope.address("answers", kind=one.kind, judge=one.judge if one.is_metric else ""),
            one.kind == selection.kind and (not one.is_metric or one.judge == selection.judge),
        )
        for name, one in offered
    ]


def heading(selection: AnswerSelection) -> str:
    """What the list of bad answers holds."""
    if selection.kind == UNHELPFUL:
        return _("Answers that did not help")
    if selection.kind == UNANSWERED:
        return _("Questions without an answer in the documents")
    values = {"metric": Score.Metric(selection.kind).label, "judge": Judgement.Judge(selection.judge).label}
    return _("Answers with low %(metric)s (%(judge)s)") % values


def make_case_address(user: AbstractBaseUser | AnonymousUser) -> str:
    """Where an answer becomes a test case; empty for those who may not make one."""
    may = isinstance(user, PermissionsMixin) and user.has_perm("evaluation.add_evaluationquestion")
    return reverse("admin:evaluation_make_case") if may else ""
