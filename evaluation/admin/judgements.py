from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from evaluation import conf
from evaluation.admin.presentation import details_table, score_text, state_badge
from evaluation.figures import percent, whole
from evaluation.judgements import judgement_queue
from evaluation.judgements.budget import tokens_spent
from evaluation.models import Judgement, Score
from retrieval.admin.base import ReadOnlyAdmin

EXCERPT_CHARACTERS = 160


class ScoreInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    model = Score
    extra = 0
    can_delete = False
    fields = ["metric", "shown", "why", "seen", "milliseconds"]
    readonly_fields = ["shown", "why", "seen"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=_("score"))
    def shown(self, score: Score) -> SafeString:
        return score_text(score)

    @admin.display(description=_("reason"))
    def why(self, score: Score) -> str:
        return score.error or score.reason or "-"

    @admin.display(description=_("details"))
    def seen(self, score: Score) -> SafeString:
        return details_table(score)


@admin.register(Judgement)
class JudgementAdmin(ReadOnlyAdmin):
    """What judges say of answers. It is only looked at, and asked for again."""

    list_display = ["question", "judge", "state", "results", "excerpt", "attempts", "created_at"]
    list_filter = ["status", "judge", "judge_name", "created_at"]
    list_select_related = ["answer"]
    list_per_page = 50
    search_fields = ["answer__question", "error"]
    ordering = ["-created_at"]
    date_hierarchy = "created_at"
    actions = ["judge_again"]
    inlines = [ScoreInline]
    fieldsets = [
        (None, {"fields": ["answer_link", "judge", "judge_name", "state", "error", "reference"]}),
        (
            _("How it came about"),
            {
                "fields": [
                    "attempts", "retry_at", "prompt_tokens", "completion_tokens", "created_at", "finished_at",
                ]
            },
        ),
    ]  # fmt: skip

    class Media:
        css = {"all": ["retrieval/admin.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Judgement]:
        judgements: QuerySet[Judgement] = super().get_queryset(request)
        return judgements.defer("answer__trace", "answer__sources", "answer__text").prefetch_related(
            Prefetch("scores", Score.objects.defer("details", "reason"))
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Also for whoever may delete answers: these must not stay because somebody judged them."""
        return request.user.has_perm("evaluation.delete_judgement") or request.user.has_perm("chat.delete_answer")

    def has_judge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.change_judgement")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"subtitle": judge_in_force(), **(extra_context or {})})

    @admin.display(description=_("question"), ordering="answer__question")
    def question(self, judgement: Judgement) -> str:
        return judgement.answer.question

    @admin.display(description=_("answer"))
    def answer_link(self, judgement: Judgement) -> SafeString:
        address = reverse("admin:chat_answer_change", args=[judgement.answer_id])
        return format_html('<a href="{}">{}</a>', address, judgement.answer.question)

    @admin.display(description=_("status"), ordering="status")
    def state(self, judgement: Judgement) -> SafeString:
        return state_badge(judgement)

    @admin.display(description=_("scores"))
    def results(self, judgement: Judgement) -> SafeString:
        rows = ((one.get_metric_display(), score_text(one)) for one in judgement.scores.all())
        return format_html_join(mark_safe("<br>"), "{} {}", rows) or mark_safe("-")

    @admin.display(description=_("error"), ordering="error")
    def excerpt(self, judgement: Judgement) -> SafeString:
        shortened = Truncator(judgement.error).chars(EXCERPT_CHARACTERS)
        return format_html('<div class="ragsite-error">{}</div>', shortened)

    @admin.action(description=_("Judge again"), permissions=["judge"])
    def judge_again(self, request: HttpRequest, judgements: QuerySet[Judgement]) -> None:
        number = judgement_queue.request_again(Judgement.objects.filter(pk__in=judgements.values("pk")))
        message = ngettext("%d answer will be judged again.", "%d answers will be judged again.", number)
        self.message_user(request, message % number, messages.SUCCESS)


def judge_in_force() -> str:
    """Who judges answers now, and what is left of the day's tokens, in a sentence for the admin."""
    if not conf.has_judge_model():
        return _t("No language model judges: JUDGE_BASE_URL and JUDGE_MODEL are not set.")
    if not settings.EVALUATE_WITH_MODEL:
        return _t("No language model judges: EVALUATE_WITH_MODEL is off.")
    budget = settings.JUDGE_DAILY_BUDGET_TOKENS
    said = {
        "judge": settings.JUDGE_MODEL,
        "share": percent(settings.JUDGE_SAMPLE_RATE, 0),
        "spent": whole(tokens_spent()),
    }
    if budget:
        return _t("%(judge)s judges %(share)s of the answers; today %(spent)s of %(budget)s tokens are spent.") % {
            **said,
            "budget": whole(budget),
        }
    return _t("%(judge)s judges %(share)s of the answers; today it took %(spent)s tokens.") % said
