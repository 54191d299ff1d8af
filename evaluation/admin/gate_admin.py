"""Gates in the admin, with a page of each gate's verdict on a version or a draft."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _t
from django.utils.translation import ngettext

from evaluation import gates
from evaluation.admin.run_admin import STYLES, comparison_context
from evaluation.exceptions import EvaluationError
from evaluation.gates import Verdict
from evaluation.models import GatePolicy
from retrieval.admin.base import PageAdmin, WholeCollectionAdmin, admin_link, badge
from retrieval.models import Draft, SearchProfile, SearchProfileVersion
from retrieval.profile_settings import ImproperProfile


@admin.register(GatePolicy)
class GatePolicyAdmin(PageAdmin, WholeCollectionAdmin):
    collection_path = "evaluation_set__collection"
    list_display = ["evaluation_set", "metric", "largest_loss", "required_for_publishing", "required_for_documents"]
    list_select_related = ["evaluation_set"]
    autocomplete_fields = ["evaluation_set"]
    fields = ["evaluation_set", "metric", "largest_loss", "required_for_publishing", "required_for_documents"]

    class Media:
        css = {"all": STYLES}
        js = ["retrieval/live.js"]

    def save_model(self, request: HttpRequest, obj: GatePolicy, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.required_for_documents and "required_for_documents" in form.changed_data:
            message = (
                _t("From now on, the documents of %s can only be changed in drafts.") % obj.evaluation_set.collection
            )
            self.message_user(request, message, messages.WARNING)

    def get_urls(self) -> list[URLPattern]:
        guard, name = self.admin_site.admin_view, "evaluation_gatepolicy_check"
        return [
            path("<int:policy_id>/versions/<int:version_id>/", guard(self.check_view), name=name),
            path("<int:policy_id>/drafts/<int:draft_id>/", guard(self.check_draft_view), name=f"{name}_draft"),
            *super().get_urls(),
        ]

    def check_view(self, request: HttpRequest, policy_id: int, version_id: int) -> HttpResponse:
        """The gate's verdict on a version; a POST requests the missing runs."""
        policy = self._policy(request, policy_id)
        version = get_object_or_404(SearchProfileVersion.objects.select_related("profile"), pk=version_id)
        may_publish = request.user.has_perm("retrieval.change_searchprofile") and not version.is_published
        context = {"version": version, "may_publish": may_publish}
        try:
            return self._check_page(request, policy, version, version.profile, context)
        except ImproperProfile as error:
            message = _t("%(version)s cannot be read: %(error)s") % {"version": version, "error": error}
            self.message_user(request, message, messages.ERROR)
            return redirect("admin:retrieval_searchprofile_change", version.profile_id)

    def check_draft_view(self, request: HttpRequest, policy_id: int, draft_id: int) -> HttpResponse:
        """The gate's verdict on a draft; a POST requests the missing runs."""
        policy = self._policy(request, policy_id)
        drafts = Draft.objects.filter(collection=policy.evaluation_set.collection)
        draft = get_object_or_404(drafts.select_related("collection", "working_copy"), pk=draft_id)
        if draft.is_open:
            return self._check_page(request, policy, draft, draft, {})
        message = _t("%(draft)s is %(status)s.") % {"draft": draft, "status": draft.get_status_display()}
        self.message_user(request, message, messages.ERROR)
        return redirect("admin:retrieval_draft_change", draft.pk)

    def _policy(self, request: HttpRequest, policy_id: int) -> GatePolicy:
        """Raises: PermissionDenied, Http404."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        policies: QuerySet[GatePolicy] = self.get_queryset(request).select_related("evaluation_set__collection")
        return get_object_or_404(policies, pk=policy_id)

    def _check_page(
        self,
        request: HttpRequest,
        policy: GatePolicy,
        subject: SearchProfileVersion | Draft,
        back: SearchProfile | Draft,
        context: dict[str, Any],
    ) -> HttpResponse:
        """Raises: PermissionDenied, ImproperProfile."""
        may_run = request.user.has_perm("evaluation.add_evaluationrun")
        if request.method == "POST":
            if not may_run:
                raise PermissionDenied
            try:
                number = len(gates.request_runs(policy, subject, request.user))
            except EvaluationError as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                message = ngettext("%d run was asked for.", "%d runs were asked for.", number)
                self.message_user(request, message % number, messages.SUCCESS)
            return HttpResponseRedirect(request.path)
        checked = gates.check(policy, subject)
        comparison = checked.comparison
        if comparison is not None and isinstance(subject, Draft):
            # Only the documents differ, and that is the purpose.
            comparison = replace(comparison, caveats=())
        context = {
            **(comparison_context(comparison, request) if comparison else {}),
            "checked": checked,
            "state": badge(checked.verdict, checked.verdict.label),
            "reason": gates.reason_of(checked),
            "runs": [(checked.candidate, checked.run), (checked.in_force, checked.baseline)],
            "may_run": may_run and checked.verdict is Verdict.NOT_MEASURED,
            "is_live": checked.verdict in (Verdict.RUNNING, Verdict.BEING_READ),
            "back": admin_link(back),
            **context,
        }
        title = _t("Gate %(set)s: %(candidate)s") % {"set": policy.evaluation_set, "candidate": checked.candidate}
        return self.render_page(request, "gatepolicy/check", title, context)
