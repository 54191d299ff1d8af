from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import F, Prefetch, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from chat.admin import AnswerAdmin, AuditedViewAdmin, ReadOnlyInline
from chat.conversations import rights
from chat.models import Answer
from core.admin_base import (
    FixedChoicesFilter,
    NamedValuesFilter,
    ReadOnlyAdmin,
    admin_link,
    render_badge,
    render_job_badge,
)
from evaluation import judgements as judgement_requests
from evaluation.figures import format_fixed, format_percent, format_whole_number
from evaluation.judgements import count_spent_tokens
from evaluation.models import Judgement, JudgeUsage, Score
from retrieval.admin.curated import CollectionFilter

EXCERPT_CHARACTERS = 160


def format_score(score: Score) -> SafeString:
    if score.score is None:
        return render_badge("failed", _t("error"))
    text = format_fixed(score.score, 2)
    return render_badge("failed", _t("%s, low") % text) if score.is_low else format_html("{}", text)


class JudgementDisplayMixin:
    @admin.display(description=_("status"), ordering="status")
    def status_badge(self, judgement: Judgement) -> SafeString:
        return render_job_badge(judgement)

    @admin.display(description=_("scores"))
    def results(self, judgement: Judgement) -> SafeString:
        rows = ((one.get_metric_display(), format_score(one)) for one in judgement.scores.all())
        return format_html_join(mark_safe("<br>"), "{} {}", rows) or mark_safe("-")


def _format_cell(value: object) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, float):
        return format_fixed(value, 2)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class ScoreInline(ReadOnlyInline):
    model = Score
    fields = ["metric", "formatted_score", "reason_or_error", "details_table", "milliseconds"]
    readonly_fields = ["formatted_score", "reason_or_error", "details_table"]

    @admin.display(description=_("score"))
    def formatted_score(self, score: Score) -> SafeString:
        return format_score(score)

    @admin.display(description=_("reason"))
    def reason_or_error(self, score: Score) -> str:
        return score.error or score.reason or "-"

    @admin.display(description=_("details"))
    def details_table(self, score: Score) -> SafeString:
        rows = [row for row in score.details if isinstance(row, dict)]
        names = list(dict.fromkeys(name for row in rows for name in row))
        context = {
            "heads": [name.replace("_", " ") for name in names],
            "rows": [[_format_cell(row.get(name)) for name in names] for row in rows],
        }
        return render_to_string("admin/evaluation/_details.html", context)


class LowScoreFilter(FixedChoicesFilter):
    """A filter for judgements with low scores, except of answers computed over a table, which rules cannot judge."""

    title = _("low score")
    parameter_name = "low"
    conditions = {
        metric.value: (
            metric.label,
            Q(scores__metric=metric, scores__score__lt=F("scores__threshold"), answer__computed__isnull=True),
        )
        for metric in Score.Metric
    }


@admin.register(Judgement)
class JudgementAdmin(JudgementDisplayMixin, AuditedViewAdmin, ReadOnlyAdmin):
    list_display = ["question", "judge", "status_badge", "results", "excerpt", "attempts", "created_at"]
    list_filter = [
        "status",
        "judge",
        LowScoreFilter,
        ("answer__collection", CollectionFilter),
        ("judge_name", NamedValuesFilter),
        "created_at",
    ]
    list_select_related = ["answer"]
    list_per_page = 50
    search_fields = ["answer__question", "error"]
    ordering = ["-created_at"]
    date_hierarchy = "created_at"
    actions = ["judge_again"]
    inlines = [ScoreInline]
    fieldsets = [
        (None, {"fields": ["answer", "judge", "judge_name", "status_badge", "error"]}),
        (
            _("Origin"),
            {
                "fields": [
                    "attempts", "retry_at", "prompt_tokens", "completion_tokens", "created_at", "finished_at",
                ]
            },
        ),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Judgement]:
        judgements: QuerySet[Judgement] = super().get_queryset(request)
        if (closed := rights.build_unreadable_condition(request.user, "answer__")) is not None:
            judgements = judgements.exclude(closed)
        return judgements.defer("answer__trace", "answer__sources", "answer__text").prefetch_related(
            Prefetch("scores", Score.objects.defer("details", "reason"))
        )

    def get_ordering(self, request: HttpRequest) -> Any:
        is_low = request.GET.get("low") in LowScoreFilter.conditions
        return ["scores__score", *self.ordering] if is_low else self.ordering

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may delete judgements.

        Users who may delete answers may do so too: an answer is deleted with its judgements.
        """
        return request.user.has_perm("evaluation.delete_judgement") or request.user.has_perm("chat.delete_answer")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"subtitle": describe_active_judge(), **(extra_context or {})})

    @admin.display(description=_("question"), ordering="answer__question")
    def question(self, judgement: Judgement) -> str:
        return judgement.answer.question

    @admin.display(description=_("error"), ordering="error")
    def excerpt(self, judgement: Judgement) -> SafeString:
        shortened = Truncator(judgement.error).chars(EXCERPT_CHARACTERS)
        return format_html('<div class="ragsite-error">{}</div>', shortened)

    @admin.action(description=_("Judge again"), permissions=["act"])
    def judge_again(self, request: HttpRequest, judgements: QuerySet[Judgement]) -> None:
        number = judgement_requests.requeue_judgements(Judgement.objects.filter(pk__in=judgements.values("pk")))
        message = ngettext("%d answer will be judged again.", "%d answers will be judged again.", number)
        self.message_user(request, message % number, messages.SUCCESS)


def describe_active_judge() -> str:
    if not settings.EVALUATE_WITH_MODEL:
        return _t("No language model judges: JUDGE_BASE_URL and JUDGE_MODEL are not set.")
    values = {
        "judge": settings.JUDGE_MODEL,
        "share": format_percent(settings.JUDGE_SAMPLE_RATE, 0),
        "spent": format_whole_number(count_spent_tokens()),
        "budget": format_whole_number(settings.JUDGE_DAILY_BUDGET_TOKENS),
    }
    if settings.JUDGE_DAILY_BUDGET_TOKENS:
        text = _t("%(judge)s judges %(share)s of the answers. It has used %(spent)s of its %(budget)s tokens today.")
    else:
        text = _t("%(judge)s judges %(share)s of the answers. It has used %(spent)s tokens today.")
    return text % values


class JudgementInline(JudgementDisplayMixin, ReadOnlyInline):
    model = Judgement
    fields = ["link", "status_badge", "error", "results"]
    readonly_fields = ["link", "status_badge", "results"]
    verbose_name_plural = _("automatic ratings")
    ordering = ["judge"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Judgement]:
        judgements: QuerySet[Judgement] = super().get_queryset(request)
        return judgements.prefetch_related("scores")

    @admin.display(description=_("judge"))
    def link(self, judgement: Judgement) -> SafeString:
        return admin_link(judgement, judgement.judge_name or judgement.get_judge_display())


admin.site.unregister(Answer)


@admin.register(Answer)
class JudgedAnswerAdmin(AnswerAdmin):
    inlines = [*AnswerAdmin.inlines, JudgementInline]
    actions = ["judge_now"]

    def has_judge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.change_judgement")

    @admin.action(description=_("Judge now"), permissions=["judge"])
    def judge_now(self, request: HttpRequest, answers: QuerySet[Answer]) -> None:
        """Request judgements by all judges, also of answers that were judged before."""
        judges = list(Judgement.Judge) if settings.EVALUATE_WITH_MODEL else [Judgement.Judge.OFFLINE]
        complete = list(answers.filter(status=Answer.Status.COMPLETED))
        for answer in complete:
            judgement_requests.requeue_judgements(Judgement.objects.filter(answer=answer, judge__in=judges))
            judgement_requests.request_judgements(answer, judges=judges)
        message = ngettext("%d answer will be judged now.", "%d answers will be judged now.", len(complete))
        self.message_user(request, message % len(complete), messages.SUCCESS)
        if left_out := answers.exclude(status=Answer.Status.COMPLETED).count():
            message = ngettext(
                "%d answer is not complete and cannot be judged.",
                "%d answers are not complete and cannot be judged.",
                left_out,
            )
            self.message_user(request, message % left_out, messages.WARNING)
        if not settings.EVALUATE_WITH_MODEL:
            self.message_user(request, _t("Scored by rules, without a language model."), messages.INFO)


@admin.register(JudgeUsage)
class JudgeUsageAdmin(ReadOnlyAdmin):
    list_display = ["day", "prompt_tokens", "completion_tokens", "total_tokens"]
    list_display_links = None
    date_hierarchy = "day"
    list_per_page = 31
