"""What judges say, on the page of the answer. The chat's admin knows no judge; it is registered again with more."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from chat.admin import AnswerAdmin, ReadOnlyInline
from chat.models import Answer
from evaluation.admin.presentation import score_table, state_badge
from evaluation.judgements import judgement_queue
from evaluation.models import Judgement


class JudgementInline(ReadOnlyInline):
    model = Judgement
    fields = ["link", "state", "error", "results"]
    readonly_fields = ["link", "state", "results"]
    verbose_name_plural = _("judgements")
    ordering = ["judge"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Judgement]:
        judgements: QuerySet[Judgement] = super().get_queryset(request)
        return judgements.prefetch_related("scores")

    @admin.display(description=_("judge"))
    def link(self, judgement: Judgement) -> SafeString:
        address = reverse("admin:evaluation_judgement_change", args=[judgement.pk])
        return format_html('<a href="{}">{}</a>', address, judgement.judge_name or judgement.get_judge_display())

    @admin.display(description=_("status"))
    def state(self, judgement: Judgement) -> SafeString:
        return state_badge(judgement)

    @admin.display(description=_("scores"))
    def results(self, judgement: Judgement) -> SafeString:
        return score_table(judgement)


admin.site.unregister(Answer)


@admin.register(Answer)
class JudgedAnswerAdmin(AnswerAdmin):
    inlines = [*AnswerAdmin.inlines, JudgementInline]
    actions = ["judge_now"]

    def has_judge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.change_judgement")

    @admin.action(description=_("Judge now"), permissions=["judge"])
    def judge_now(self, request: HttpRequest, answers: QuerySet[Answer]) -> None:
        """By every judge there is, whatever was sampled; judgements there are already are made anew."""
        judges = list(Judgement.Judge) if settings.EVALUATE_WITH_MODEL else [Judgement.Judge.OFFLINE]
        complete = answers.filter(status=Answer.Status.COMPLETED)
        number = 0
        for answer in complete:
            judgement_queue.request_again(Judgement.objects.filter(answer=answer, judge__in=judges))
            judgement_queue.request(answer, judges=judges)
            number += 1
        message = ngettext("%d answer will be judged now.", "%d answers will be judged now.", number)
        self.message_user(request, message % number, messages.SUCCESS)
        if left_out := answers.exclude(status=Answer.Status.COMPLETED).count():
            message = ngettext(
                "%d answer is not complete and cannot be judged.",
                "%d answers are not complete and cannot be judged.",
                left_out,
            )
            self.message_user(request, message % left_out, messages.WARNING)
        if not settings.EVALUATE_WITH_MODEL:
            self.message_user(request, _t("By rules alone: no language model judges."), messages.INFO)
