"""The admin's first page and menu. If STAFF_REQUIRES_MFA is on, the admin requires a second factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.conversations.rights import explain_answer_access, filter_readable_answers
from chat.models import Answer
from core.user_types import AnyUser
from ragsite.accounts.front_figures import FrontPageCounts
from ragsite.accounts.sign_in import lacks_second_factor
from ragsite.accounts.who_sees import build_reader_list, suggest_accounts
from ragsite.operations.queues import count_queued_work
from ragsite.processes import local_model
from retrieval.models import Collection, Document
from retrieval.rights.reasons import explain_collection_access, explain_document_access

DAILY = (
    "retrieval.document",
    "retrieval.collection",
    "evaluation.dashboard",
    "evaluation.gaps",
    "chat.answer",
    "chat.approvedanswer",
    "retrieval.draft",
    "retrieval.source",
)
EXPERT = {
    "people": (
        _("People"),
        (
            "auth.user",
            "auth.group",
            "ragsite.invitation",
            "chat.questionbudget",
            "mfa.authenticator",
            "socialaccount.socialaccount",
            "ragsite.auditentry",
            "ragsite.siteidentity",
        ),
    ),
    "models": (
        _("Models"),
        (
            "retrieval.searchprofile",
            "retrieval.playground",
            "chat.languagemodel",
            "chat.collectioninstructions",
            "evaluation.embeddertrial",
        ),
    ),
    "measuring": (
        _("Measuring"),
        (
            "evaluation.evaluationset",
            "evaluation.evaluationquestion",
            "evaluation.evaluationrun",
            "evaluation.gatepolicy",
            "evaluation.experiment",
            "evaluation.judgement",
            "evaluation.judgeusage",
            "chat.conversation",
            "retrieval.chunk",
        ),
    ),
    "programs": (_("Programs"), ()),
}
EXPLANATIONS = {
    "retrieval.document": _("Add files, see what was read of them, mend what failed."),
    "retrieval.collection": _("Who may ask which documents, and how they are shown."),
    "evaluation.dashboard": _("How good the answers are, and how fast."),
    "evaluation.gaps": _("Questions that the documents do not answer."),
    "chat.answer": _("All questions and answers, with their sources."),
    "chat.approvedanswer": _("Answers that people have checked."),
    "retrieval.draft": _("Changes that are tried before readers see them."),
    "retrieval.source": _("Places from which documents are brought up to date."),
}


class AccountsAdminSite(AdminSite):
    def each_context(self, request: HttpRequest) -> dict[str, object]:
        return {**super().each_context(request), "queues": count_queued_work}

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and not lacks_second_factor(request.user)

    def index(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> TemplateResponse:
        if settings.LOCAL_MODEL and not local_model.is_ready():
            messages.warning(
                request,
                _t("The local language model does not run; answers are quoted from the documents."),
            )
        figures = FrontPageCounts(request.user)
        response = super().index(request, {"waiting": figures.list_tasks(), **(extra_context or {})})
        context: Any = response.context_data
        for model in next((app["models"] for app in context["app_list"] if app["app_label"] == "daily"), []):
            model["figure"] = figures.describe_card(model["key"])
        return response

    def login(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        if super().has_permission(request) and lacks_second_factor(request.user):
            messages.warning(request, _t("Set up a second factor first: this site asks it of everybody on its staff."))
            return redirect("mfa_index")
        return super().login(request, extra_context)

    def get_urls(self) -> list[Any]:
        return [path("why/", self.admin_view(self.explain_access_view), name="why"), *super().get_urls()]

    def explain_access_view(self, request: HttpRequest) -> HttpResponse:
        """List who can see a collection, a document or an answer, and say why a chosen account can or cannot."""
        subject = _find_requested_object(request.user, request.GET)
        name = request.GET.get("account", "").strip()
        account: Any = AnonymousUser()
        if name:
            account = get_user_model()._default_manager.filter(Q(username=name) | Q(email__iexact=name)).first()
        explain: Any = {
            Document: explain_document_access,
            Collection: explain_collection_access,
            Answer: explain_answer_access,
        }[type(subject)]
        context = {
            **self.each_context(request),
            "title": _t("Who sees this?"),
            "readers": build_reader_list(request.user, subject),
            "suggested": suggest_accounts(request.user),
            "similar": suggest_accounts(request.user, name) if account is None else [],
            "subject": subject,
            "asked": {kind: request.GET[kind] for kind in _SUBJECTS if kind in request.GET},
            "account": name,
            "is_unknown": account is None,
            "reason": explain(account, subject) if account is not None and "account" in request.GET else None,
        }
        return TemplateResponse(request, "admin/why.html", context)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        models = {
            f"{app['app_label']}.{model['object_name'].lower()}": model for app in apps for model in app["models"]
        }
        if "evaluation.dashboard" in models:
            address = reverse("admin:evaluation_dashboard_gaps")
            dashboard = models["evaluation.dashboard"]
            gaps = {**dashboard, "name": _t("Gaps in the documents"), "object_name": "Gaps", "admin_url": address}
            models["evaluation.gaps"] = gaps
            if request.path == address:
                # Django highlights a menu entry if the page's address begins with it. The "?" prevents this for the
                # dashboard.
                dashboard["admin_url"] += "?"
        if "retrieval.searchprofile" in models:
            profiles = models["retrieval.searchprofile"]
            address = reverse("admin:retrieval_searchprofile_playground")
            playground = {"name": _t("Playground"), "object_name": "Playground", "admin_url": address, "add_url": None}
            models["retrieval.playground"] = {**profiles, **playground}
        for model, explanation in EXPLANATIONS.items():
            if model in models:
                models[model].update(explanation=explanation, key=model)
        daily = [models.pop(name) for name in DAILY if name in models]
        groups: list[tuple[str, str, list[Any]]] = [("daily", _t("Every day"), daily)]
        groups += [
            (label, str(name), [models.pop(each) for each in wanted if each in models])
            for label, (name, wanted) in EXPERT.items()
        ]
        groups[-1][2].extend(models.values())
        return [
            {
                "name": name,
                "app_label": label,
                "app_url": f"{reverse('admin:index', current_app=self.name)}#{label}",
                "has_module_perms": True,
                "models": found,
            }
            for label, name, found in groups
            if found
        ]


_SUBJECTS = ("document", "collection", "answer")


def _find_requested_object(user: AnyUser, asked: Mapping[str, str]) -> Document | Collection | Answer:
    """Return the object whose readers are shown. Raises: Http404 if the user may not curate or see it."""
    curated = Collection.objects.curated_by(user)
    found: Document | Collection | Answer | None = None
    try:
        if "document" in asked and user.has_perm("retrieval.view_document"):
            found = Document.objects.readable_by(user).filter(pk=asked["document"], collection__in=curated).first()
        elif "collection" in asked and user.has_perm("retrieval.view_collection"):
            found = curated.filter(pk=asked["collection"]).first()
        elif "answer" in asked and user.has_perm("chat.view_answer"):
            found = filter_readable_answers(user, Answer.objects.filter(pk=asked["answer"])).first()
    except (ValueError, ValidationError):
        raise Http404 from None
    if found is None:
        raise Http404
    return found
