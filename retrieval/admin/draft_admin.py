"""Drafts of collections: begun, looked at, published as a whole or discarded here. What is in one is changed on the
pages of its documents."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, reverse
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.admin.admin_rights import CollectionFilter, WholeCollectionAdmin
from retrieval.admin.base import PageAdmin, ReadOnlyAdmin, read_override
from retrieval.admin.draft_page import draft_page, find_changes, render_badge, summarise
from retrieval.documents.drafts import lifecycle
from retrieval.documents.drafts.lifecycle import DraftRefused
from retrieval.gates import PublicationRefused
from retrieval.models import Collection, Draft
from retrieval.models.collection import CollectionQuerySet


@admin.register(Draft)
class DraftAdmin(PageAdmin, ReadOnlyAdmin, WholeCollectionAdmin):
    list_display = ["name", "collection", "state", "copied", "changed", "begun", "published"]
    list_filter = ["status", ("collection", CollectionFilter)]
    list_select_related = ["collection", "working_copy", "created_by", "published_by"]
    list_per_page = 50
    change_form_template = "admin/retrieval/draft/change_form.html"

    class Media:
        css = {"all": ["retrieval/admin.css", "retrieval/profiles.css", "retrieval/documents/drafts.css"]}
        js = ["retrieval/live.js"]

    @admin.display(description=_("draft"), ordering="pk")
    def name(self, draft: Draft) -> str:
        return f"#{draft.pk}"

    @admin.display(description=_("status"), ordering="status")
    def state(self, draft: Draft) -> SafeString:
        return render_badge(draft)

    @admin.display(description=_("changes"))
    def changed(self, draft: Draft) -> str:
        return summarise(find_changes(draft))

    @admin.display(description=_("begun"), ordering="created_at")
    def begun(self, draft: Draft) -> str:
        return _describe_event(draft.created_at, draft.created_by)

    @admin.display(description=_("published"), ordering="published_at")
    def published(self, draft: Draft) -> str:
        return _describe_event(draft.published_at, draft.published_by)

    def page_context(self, request: HttpRequest, obj: Draft) -> dict[str, Any]:
        return {
            "title": str(obj),
            "subtitle": None,
            "draft": obj,
            "page": draft_page(obj),
            "may_publish": request.user.has_perm("retrieval.change_draft"),
            "may_add_documents": request.user.has_perm("retrieval.add_document"),
        }

    # Begin, publish, discard -----------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        change = "retrieval.change_draft"
        return [
            self.button_path("begin/<int:collection_id>/", self.begin_view, "draft_begin", "retrieval.add_draft"),
            self.button_path("<int:pk>/publish/", self.publish_view, "draft_publish", change),
            self.button_path("<int:pk>/discard/", self.discard_view, "draft_discard", change),
            *super().get_urls(),
        ]

    def begin_view(self, request: HttpRequest, collection_id: int) -> HttpResponse:
        collection = get_object_or_404(Collection.objects.curated_by(request.user), pk=collection_id)
        try:
            draft = lifecycle.begin(collection, request.user)
        except DraftRefused as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(reverse("admin:retrieval_collection_change", args=[collection.pk]))
        self.log_addition(request, draft, [{"added": {}}])
        self.message_user(request, _t("Begun: %s. Its documents are copied now.") % draft, messages.SUCCESS)
        if self.has_view_permission(request):
            return _redirect_to_page(draft)
        return HttpResponseRedirect(reverse("admin:retrieval_collection_change", args=[collection.pk]))

    def publish_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        draft = self._draft(request, pk)
        try:
            draft = lifecycle.publish(draft, request.user, override=read_override(request))
        except DraftRefused as error:
            self.message_user(request, _t("Not published: %s") % error, messages.ERROR)
        except PublicationRefused as refusal:
            return self.render_refusal(
                request,
                refusal,
                subject=draft,
                page=reverse("admin:retrieval_draft_change", args=[draft.pk]),
                page_title=draft,
                action=request.path,
                kept=_t("It is kept with your name and the objections, and shown on the draft's page."),
            )
        else:
            message = _t("Published.")
            if draft.override:
                message = _t("Published against objections, because: %s") % draft.override
            self.log_change(request, draft, message)
            self.message_user(request, _t("Being published: %s.") % draft, messages.SUCCESS)
        return _redirect_to_page(draft)

    def discard_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        draft = self._draft(request, pk)
        try:
            draft = lifecycle.discard(draft)
        except DraftRefused as error:
            self.message_user(request, _t("Not discarded: %s") % error, messages.ERROR)
        else:
            self.log_change(request, draft, _t("Discarded."))
            self.message_user(request, _t("Discarded: %s.") % draft, messages.SUCCESS)
        return _redirect_to_page(draft)

    def open_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return super().open_collections(request) & Collection.objects.curated_by(request.user)

    def _draft(self, request: HttpRequest, pk: int) -> Draft:
        """Raises: Http404."""
        drafts: QuerySet[Draft] = self.get_queryset(request).select_related("collection")
        return get_object_or_404(drafts, pk=pk)


def may_begin(request: HttpRequest) -> bool:
    return request.user.has_perm("retrieval.add_draft")


def _describe_event(moment: datetime | None, user: AbstractBaseUser | None) -> str:
    if moment is None:
        return "–"
    message = date_format(localtime(moment), "SHORT_DATETIME_FORMAT")
    return f"{message}, {user}" if user is not None else message


def _redirect_to_page(draft: Draft) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:retrieval_draft_change", args=[draft.pk]))
