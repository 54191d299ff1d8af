"""Drafts of collections: begun, looked at, published as a whole or discarded here. What is in one is changed on the
pages of its documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, reverse
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval import gates
from retrieval.admin.base import CollectionFilter, PageAdmin, ReadOnlyAdmin, WholeCollectionAdmin, badge, read_override
from retrieval.documents.drafts import lifecycle
from retrieval.documents.drafts.lifecycle import Changes, DraftRefused, changes_of
from retrieval.gates import Objection, PublicationRefused
from retrieval.models import Collection, Document, Draft
from retrieval.models.collection import CollectionQuerySet

# What the page of a draft shows.

MOST_NAMED = 100
_UNREAD = (Document.Status.PENDING, Document.Status.PROCESSING)
_COLOURS = {
    Draft.Status.COPYING: "processing",
    Draft.Status.OPEN: "pending",
    Draft.Status.PUBLISHING: "processing",
    Draft.Status.PUBLISHED: "ready",
    Draft.Status.DISCARDED: "stopped",
}


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """``address`` is empty when the document is gone; ``state`` is a badge for one that is not ready."""

    source: str
    address: str
    state: SafeString | str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Documents with something in common, the first of which are named."""

    key: str
    label: str | Promise
    number: int
    named: list[NamedDocument]

    @property
    def unnamed(self) -> int:
        return self.number - len(self.named)


@dataclass(frozen=True, slots=True)
class DraftPage:
    """``is_live`` says that a worker is at it. The gates are asked only about what could be published now."""

    state: SafeString
    is_live: bool
    groups: list[Group]
    failed: Group | None = None
    unread: int = 0
    objections: tuple[Objection, ...] = ()
    may_be_published: bool = False


def draft_page(draft: Draft) -> DraftPage:
    state = render_badge(draft)
    if not draft.is_open or draft.status == Draft.Status.COPYING:
        return DraftPage(state, draft.status == Draft.Status.COPYING, list_groups(draft))
    failed = Document.objects.filter(collection=draft.working_copy_id, status=Document.Status.FAILED).order_by("source")
    unread = Document.objects.filter(collection=draft.working_copy_id, status__in=_UNREAD).count()
    groups = list_groups(draft)
    may_be_published = draft.status == Draft.Status.OPEN and bool(groups) and not unread
    return DraftPage(
        state,
        is_live=draft.status == Draft.Status.PUBLISHING or unread > 0,
        groups=groups,
        failed=_name_failed(failed),
        unread=unread,
        objections=gates.objections_to_draft(draft) if may_be_published else (),
        may_be_published=may_be_published,
    )


def render_badge(draft: Draft) -> SafeString:
    """The status and, while documents are copied, how far that is."""
    label: str = draft.get_status_display()
    if draft.status == Draft.Status.COPYING:
        total = Document.objects.filter(collection=draft.collection_id).count()
        label = format_html(
            '{} <progress max="{}" value="{}" aria-hidden="true"></progress> {}',
            label,
            max(total, 1),
            draft.copied,
            _t("%(copied)d of %(total)d") % {"copied": draft.copied, "total": total},
        )
    return badge(_COLOURS[Draft.Status(draft.status)], label)


def find_changes(draft: Draft) -> Changes:
    """What the draft changes or, once it is published, has changed; nothing while it is copied or is discarded."""
    if draft.status in (Draft.Status.OPEN, Draft.Status.PUBLISHING):
        return changes_of(draft)
    return Changes(**{name: tuple(sources) for name, sources in draft.changes.items()})


def list_groups(draft: Draft) -> list[Group]:
    """Of added, changed and removed documents, those groups that are not empty."""
    changes = find_changes(draft)
    is_published = draft.status == Draft.Status.PUBLISHED
    there = draft.collection_id if is_published else draft.working_copy_id
    groups = [
        _name_documents("added", _("Added"), changes.added, there),
        _name_documents("changed", _("Changed"), changes.changed, there),
        _name_documents("removed", _("Removed"), changes.removed, None if is_published else draft.collection_id),
    ]
    return [group for group in groups if group.number]


def summarise(changes: Changes) -> str:
    """How many documents are added, changed and removed, in words; a dash when none is."""
    counts = [
        _t("%d added") % len(changes.added) if changes.added else "",
        _t("%d changed") % len(changes.changed) if changes.changed else "",
        _t("%d removed") % len(changes.removed) if changes.removed else "",
    ]
    return ", ".join(filter(None, counts)) or "–"


def _name_documents(key: str, label: str | Promise, sources: Sequence[str], collection_id: int | None) -> Group:
    first = sources[:MOST_NAMED]
    found = Document.objects.filter(collection=collection_id, source__in=first) if collection_id else []
    documents = {document.source: document for document in found}
    return Group(key, label, len(sources), [_name_document(source, documents.get(source)) for source in first])


def _name_failed(documents: QuerySet[Document]) -> Group | None:
    named = [_name_document(document.source, document) for document in documents[:MOST_NAMED]]
    return Group("failed", _("Could not be read"), documents.count(), named) if named else None


def _name_document(source: str, document: Document | None) -> NamedDocument:
    if document is None:
        return NamedDocument(source, "")
    is_ready = document.status == Document.Status.READY
    state = "" if is_ready else badge(document.status, document.get_status_display())
    return NamedDocument(source, reverse("admin:retrieval_document_change", args=[document.pk]), state)


@admin.register(Draft)
class DraftAdmin(PageAdmin, ReadOnlyAdmin, WholeCollectionAdmin):
    list_display = ["name", "collection", "state", "copied", "changed", "begun", "published"]
    list_filter = ["status", ("collection", CollectionFilter)]
    list_select_related = ["collection", "working_copy", "created_by", "published_by"]
    list_per_page = 50
    change_form_template = "admin/retrieval/draft/change_form.html"

    class Media:
        css = {"all": ["retrieval/admin.css", "retrieval/profiles.css", "retrieval/drafts.css"]}
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
        self.message_user(request, _t("Started: %s. Its documents are being copied.") % draft, messages.SUCCESS)
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
