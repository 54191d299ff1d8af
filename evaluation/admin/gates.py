"""Gates and what they say of a version, and the alerts of watched sets."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from evaluation import gates
from evaluation.admin.run_presentation import STYLES, comparison_context, interval_text, run_badge
from evaluation.gates import Verdict
from evaluation.metrics import Interval
from evaluation.models import CorpusAlert, GatePolicy
from retrieval.admin.base import ReadOnlyAdmin, badge
from retrieval.models import SearchProfileVersion
from retrieval.ranking.profile import ImproperProfile

_VERDICTS = {
    Verdict.IN_FORCE: ("ready", _("in force")),
    Verdict.PASSED: ("ready", _("passed")),
    Verdict.WORSE: ("failed", _("worse")),
    Verdict.RUNNING: ("processing", _("being measured")),
    Verdict.NOT_MEASURED: ("pending", _("not measured")),
    Verdict.EMPTY: ("failed", _("nothing to measure")),
}


@admin.register(GatePolicy)
class GatePolicyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    list_display = ["evaluation_set", "metric", "largest_loss", "required_for_publishing", "watches_corpus", "alerts"]
    list_select_related = ["evaluation_set"]
    autocomplete_fields = ["evaluation_set"]
    fields = ["evaluation_set", "metric", "largest_loss", "required_for_publishing", "watches_corpus"]

    class Media:
        css = {"all": STYLES}
        js = ["evaluation/live.js"]

    @admin.display(description=_("alerts nobody has seen"))
    def alerts(self, policy: GatePolicy) -> SafeString | str:
        number = gates.open_alerts().filter(policy=policy).count()
        if not number:
            return "–"
        address = reverse("admin:evaluation_corpusalert_changelist")
        return format_html('<a href="{}?policy__id__exact={}">{}</a>', address, policy.pk, badge("failed", number))

    def get_urls(self) -> list[URLPattern]:
        checked = self.admin_site.admin_view(self.check_view)
        return [
            path("<int:policy_id>/versions/<int:version_id>/", checked, name="evaluation_gatepolicy_check"),
            *super().get_urls(),
        ]

    def check_view(self, request: HttpRequest, policy_id: int, version_id: int) -> HttpResponse:
        """What the gate says of a version; a POST has measured what it lacks."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        policies = GatePolicy.objects.select_related("evaluation_set__collection")
        policy = get_object_or_404(policies, pk=policy_id)
        version = get_object_or_404(SearchProfileVersion.objects.select_related("profile"), pk=version_id)
        may_run = request.user.has_perm("evaluation.add_evaluationrun")
        try:
            if request.method == "POST":
                if not may_run:
                    raise PermissionDenied
                number = len(gates.request_runs(policy, version, request.user))
                message = ngettext("%d run was asked for.", "%d runs were asked for.", number)
                self.message_user(request, message % number, messages.SUCCESS)
                return HttpResponseRedirect(request.path)
            checked = gates.check(policy, version)
        except ImproperProfile as error:
            told = _t("%(version)s cannot be read: %(error)s") % {"version": version, "error": error}
            self.message_user(request, told, messages.ERROR)
            return HttpResponseRedirect(reverse("admin:retrieval_searchprofile_change", args=[version.profile_id]))
        colour, label = _VERDICTS[checked.verdict]
        context = {
            **self.admin_site.each_context(request),
            **(comparison_context(checked.comparison, request) if checked.comparison else {}),
            "title": _t("Gate %(set)s: %(version)s") % {"set": policy.evaluation_set, "version": version},
            "opts": self.opts,
            "media": self.media,
            "checked": checked,
            "state": badge(colour, label),
            "reason": gates.reason_of(checked),
            "runs": [
                (name, run, run_badge(run) if run is not None else "")
                for name, run in ((version, checked.run), (checked.in_force, checked.baseline))
            ],
            "may_run": may_run and checked.verdict is Verdict.NOT_MEASURED,
            "may_publish": request.user.has_perm("retrieval.change_searchprofile") and not version.is_published,
            "is_live": checked.verdict is Verdict.RUNNING,
        }
        return TemplateResponse(request, "admin/evaluation/gatepolicy/check.html", context)


@admin.register(CorpusAlert)
class CorpusAlertAdmin(ReadOnlyAdmin):
    """What is in force does worse since documents changed. Somebody looks, and says so."""

    list_display = ["policy", "change", "runs", "created_at", "acknowledged_at", "acknowledged_by"]
    list_filter = ["policy", ("acknowledged_at", admin.EmptyFieldListFilter)]
    list_select_related = ["policy__evaluation_set", "run", "baseline", "acknowledged_by"]
    list_display_links = None
    actions = ["acknowledge"]

    class Media:
        css = {"all": ["retrieval/admin.css"]}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("evaluation.change_corpusalert")

    @admin.display(description=_("difference"), ordering="difference")
    def change(self, alert: CorpusAlert) -> str:
        interval = Interval(alert.difference, alert.low, alert.high)
        return f"{alert.policy.get_metric_display()} {interval_text(interval, signed=True)}"

    @admin.display(description=_("runs"))
    def runs(self, alert: CorpusAlert) -> SafeString:
        address = reverse("admin:evaluation_evaluationrun_compare", args=[alert.run_id, alert.baseline_id])
        return format_html('<a href="{}">#{} → #{}</a>', address, alert.baseline_id, alert.run_id)

    @admin.action(description=_("Mark as seen"), permissions=["acknowledge"])
    def acknowledge(self, request: HttpRequest, alerts: QuerySet[CorpusAlert]) -> None:
        number = CorpusAlert.objects.filter(pk__in=alerts.values("pk"), acknowledged_at=None).update(
            acknowledged_at=timezone.now(), acknowledged_by=request.user.pk
        )
        message = ngettext("%d alert is marked as seen.", "%d alerts are marked as seen.", number)
        self.message_user(request, message % number, messages.SUCCESS)
