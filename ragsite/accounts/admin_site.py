"""The admin's first page and navigation. STAFF_REQUIRES_MFA closes the admin without a second factor."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.db.models import OuterRef, Q, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from chat.conversations.rights import explain_answer, filter_open_answers
from chat.models import Answer, ApprovedAnswer
from core.user_types import AnyUser
from evaluation.dashboard.gaps import find_unanswered
from evaluation.dashboard.scope import DEFAULT_DAYS, scope
from ragsite.accounts.sign_in import lacks_second_factor
from ragsite.accounts.who_sees import list_readers, suggest_accounts
from ragsite.operations.readiness import count_queued_work
from ragsite.processes import local_model
from retrieval.models import Collection, Document, Draft, Source, SourceRun
from retrieval.rights.reasons import explain_collection, explain_document
from retrieval.rights.staff import list_source_collections

# Curators work with these models daily, in this order; the others are for experts.
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
# The other models, for experts, in four groups; a model that none names is among the programs.
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
# Days before expiry.
DUE_DAYS = 14


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
        return super().index(request, {"waiting": _list_tasks(request.user), **(extra_context or {})})

    def login(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        if super().has_permission(request) and lacks_second_factor(request.user):
            messages.warning(request, _t("Set up a second factor first: this site asks it of everybody on its staff."))
            return redirect("mfa_index")
        return super().login(request, extra_context)

    def get_urls(self) -> list[Any]:
        return [path("why/", self.admin_view(self.why_view), name="why"), *super().get_urls()]

    def why_view(self, request: HttpRequest) -> HttpResponse:
        """List who can see a collection, a document or an answer, and explain why an account can (not)."""
        subject = _find_subject(request.user, request.GET)
        name = request.GET.get("account", "").strip()
        account: Any = AnonymousUser()
        if name:
            account = get_user_model()._default_manager.filter(Q(username=name) | Q(email__iexact=name)).first()
        explain: Any = {Document: explain_document, Collection: explain_collection, Answer: explain_answer}[
            type(subject)
        ]
        context = {
            **self.each_context(request),
            "title": _t("Who sees this?"),
            "readers": list_readers(request.user, subject),
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
                # Django marks models whose address begins the page's address, so also the dashboard.
                dashboard["admin_url"] += "?"
        if "retrieval.searchprofile" in models:
            profiles = models["retrieval.searchprofile"]
            address = reverse("admin:retrieval_searchprofile_playground")
            playground = {"name": _t("Playground"), "object_name": "Playground", "admin_url": address, "add_url": None}
            models["retrieval.playground"] = {**profiles, **playground}
        for model, explanation in EXPLANATIONS.items():
            if model in models:
                models[model]["explanation"] = explanation
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


def _find_subject(user: AnyUser, asked: Mapping[str, str]) -> Document | Collection | Answer:
    """Return the object to explain. Raises: Http404 if the user may not curate or see it."""
    curated = Collection.objects.curated_by(user)
    found: Document | Collection | Answer | None = None
    try:
        if "document" in asked and user.has_perm("retrieval.view_document"):
            found = Document.objects.readable_by(user).filter(pk=asked["document"], collection__in=curated).first()
        elif "collection" in asked and user.has_perm("retrieval.view_collection"):
            found = curated.filter(pk=asked["collection"]).first()
        elif "answer" in asked and user.has_perm("chat.view_answer"):
            found = filter_open_answers(user, Answer.objects.filter(pk=asked["answer"])).first()
    except (ValueError, ValidationError):
        raise Http404 from None
    if found is None:
        raise Http404
    return found


def _list_tasks(user: AnyUser) -> list[tuple[int, str, str]]:
    """Return the user's open tasks as (number, sentence, address): failures, unanswered questions, due reviews."""
    today = timezone.localdate()
    curated = Collection.objects.curated_by(user)
    documents = Document.objects.readable_by(user).filter(collection__in=curated)
    document_list = reverse("admin:retrieval_document_changelist")
    tasks: list[tuple[int, Any, str]] = []
    if user.has_perm("retrieval.view_document"):
        said = ngettext_lazy("%d document could not be read.", "%d documents could not be read.")
        failed = documents.filter(status=Document.Status.FAILED)
        tasks.append((failed.count(), said, f"{document_list}?status__exact=failed"))
    if user.has_perm("retrieval.view_source"):
        said = ngettext_lazy("The last run of %d source failed.", "The last runs of %d sources failed.")
        runs = SourceRun.objects.filter(source=OuterRef("pk"), is_preview=False).order_by("-pk")
        sources = Source.objects.filter(collection__in=list_source_collections(user))
        broken = sources.annotate(last=Subquery(runs.values("status")[:1])).filter(last=SourceRun.Status.FAILED)
        tasks.append((broken.count(), said, reverse("admin:retrieval_source_changelist")))
    if user.has_perm("chat.view_answer"):
        said = ngettext_lazy("%d question was not answered well.", "%d questions were not answered well.")
        address = reverse("admin:evaluation_dashboard_gaps")
        tasks.append((find_unanswered(scope(user))[1], said, f"{address}?days={DEFAULT_DAYS}"))
    if user.has_perm("chat.view_approvedanswer"):
        approved = ApprovedAnswer.objects.filter(state=ApprovedAnswer.State.APPROVED, collection__in=curated)
        address = reverse("admin:chat_approvedanswer_changelist")
        said = ngettext_lazy("%d approved answer has to be looked at.", "%d approved answers have to be looked at.")
        tasks.append((approved.exclude(flag="").count(), said, f"{address}?flagged=yes"))
        said = ngettext_lazy("%d approved answer expires soon.", "%d approved answers expire soon.")
        soon = approved.filter(flag="", expires_on__lte=today + timedelta(days=DUE_DAYS))
        tasks.append((soon.count(), said, f"{address}?o=5"))
    if user.has_perm("retrieval.view_document"):
        said = ngettext_lazy("%d document is due for a review.", "%d documents are due for a review.")
        tasks.append((documents.filter(review_on__lte=today).count(), said, f"{document_list}?review=due"))
    if user.has_perm("retrieval.view_draft"):
        said = ngettext_lazy("%d draft is not published yet.", "%d drafts are not published yet.")
        drafts = Draft.objects.open().filter(collection__in=curated)
        tasks.append((drafts.count(), said, reverse("admin:retrieval_draft_changelist")))
    return [(number, said % number, address) for number, said, address in tasks if number]
