from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _t
from django.utils.translation import ngettext

from core.admin_base import PageAdmin, admin_link, redirect_to, render_badge
from evaluation import gates
from evaluation.admin.run_admin import comparison_context
from evaluation.exceptions import EvaluationError
from evaluation.gates import Verdict
from evaluation.models import GatePolicy
from retrieval.admin.curated import FullyReadableRowsAdmin
from retrieval.models import Draft, SearchProfile, SearchProfileVersion
from retrieval.profile_settings import ImproperProfile


@admin.register(GatePolicy)
class GatePolicyAdmin(PageAdmin, FullyReadableRowsAdmin):
    collection_path = "evaluation_set__collection"
    list_display = ["evaluation_set", "metric", "largest_loss", "required_for_publishing", "required_for_documents"]
    list_select_related = ["evaluation_set"]
    autocomplete_fields = ["evaluation_set"]
    fields = ["evaluation_set", "metric", "largest_loss", "required_for_publishing", "required_for_documents"]

    def save_model(self, request: HttpRequest, obj: GatePolicy, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.required_for_documents and "required_for_documents" in form.changed_data:
            message = (
                _t("From now on, the documents of %s can only be changed in drafts.") % obj.evaluation_set.collection
            )
            self.message_user(request, message, messages.WARNING)

    def get_urls(self) -> list[URLPattern]:
        check = self.admin_site.admin_view(self.check_view)
        route = "<int:policy_id>/<str:kind>/<int:pk>/"
        return [path(route, check, name="evaluation_gatepolicy_check"), *super().get_urls()]

    def check_view(self, request: HttpRequest, policy_id: int, kind: str, pk: int) -> HttpResponse:
        """Show whether a search profile's version or a draft passes a gate. A POST starts missing measurements."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        policies: QuerySet[GatePolicy] = self.get_queryset(request).select_related("evaluation_set__collection")
        policy = get_object_or_404(policies, pk=policy_id)
        subject: SearchProfileVersion | Draft
        back: SearchProfile | Draft
        if kind == "versions":
            subject = get_object_or_404(SearchProfileVersion.objects.select_related("profile"), pk=pk)
            back = subject.profile
        elif kind == "drafts":
            drafts = Draft.objects.filter(collection=policy.evaluation_set.collection)
            back = subject = get_object_or_404(drafts.select_related("collection", "working_copy"), pk=pk)
        else:
            raise Http404
        try:
            with self.show_errors_as_messages(request, EvaluationError):
                if isinstance(subject, Draft) and not subject.is_open:
                    names = {"draft": subject, "status": subject.get_status_display()}
                    raise EvaluationError(_t("%(draft)s is %(status)s.") % names)
                if request.method == "POST":
                    return self._request_runs(request, policy, subject)
                return self._render_check_page(request, policy, subject, back)
        except ImproperProfile as error:
            message = _t("%(version)s cannot be read: %(error)s") % {"version": subject, "error": error}
            self.message_user(request, message, messages.ERROR)
        return redirect_to(back)

    def _request_runs(
        self, request: HttpRequest, policy: GatePolicy, subject: SearchProfileVersion | Draft
    ) -> HttpResponse:
        if not request.user.has_perm("evaluation.add_evaluationrun"):
            raise PermissionDenied
        number = len(gates.request_runs(policy, subject, request.user))
        message = ngettext("%d run was asked for.", "%d runs were asked for.", number)
        self.tell_done(request, message % number)
        return redirect(request.path)

    def _render_check_page(
        self,
        request: HttpRequest,
        policy: GatePolicy,
        subject: SearchProfileVersion | Draft,
        back: SearchProfile | Draft,
    ) -> HttpResponse:
        checked = gates.check_gate(policy, subject)
        comparison, may_run = checked.comparison, request.user.has_perm("evaluation.add_evaluationrun")
        if comparison is not None and isinstance(subject, Draft):
            # A draft (an unpublished copy) has other documents on purpose, so it gets no caveats.
            comparison = replace(comparison, caveats=())
        may_publish = isinstance(subject, SearchProfileVersion) and not subject.is_published
        context = {
            **(comparison_context(comparison, request) if comparison else {}),
            "checked": checked,
            "state": render_badge(checked.verdict, checked.verdict.label),
            "reason": gates.describe_gate_check(checked),
            "may_run": may_run and checked.verdict is Verdict.NOT_MEASURED,
            "is_live": checked.verdict in (Verdict.RUNNING, Verdict.BEING_READ),
            "back": admin_link(back),
            "version": subject,
            "may_publish": may_publish and request.user.has_perm("retrieval.change_searchprofile"),
        }
        title = _t("Gate %(set)s: %(candidate)s") % {"set": policy.evaluation_set, "candidate": checked.candidate.name}
        return self.render_page(request, "gatepolicy/check", title, context)
