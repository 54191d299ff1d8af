"""Pages to begin, review, publish and discard drafts."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.admin_base import ReadOnlyAdmin, admin_link, redirect_to, render_badge
from retrieval import gates
from retrieval.admin.curated import CollectionFilter, FullyReadableRowsAdmin
from retrieval.admin.gated import GatedAdmin, read_override_reason
from retrieval.documents.drafts import lifecycle
from retrieval.documents.drafts.lifecycle import DraftChanges, DraftRefused, find_draft_changes
from retrieval.gates import PublicationRefused
from retrieval.models import Collection, Document, Draft
from retrieval.models.collection import CollectionQuerySet

MOST_NAMED = 100
_UNREAD = (Document.Status.PENDING, Document.Status.PROCESSING)


def _read_changes(draft: Draft) -> DraftChanges:
    return DraftChanges(**{name: tuple(sources) for name, sources in draft.changes.items()})


def _pair_sources_with_documents(
    sources: Sequence[str], collection_id: int | None
) -> list[tuple[str, Document | None]]:
    first = sources[:MOST_NAMED]
    found = {one.source: one for one in Document.objects.filter(collection=collection_id, source__in=first)}
    return [(source, found.get(source)) for source in first]


@admin.register(Draft)
class DraftAdmin(GatedAdmin, ReadOnlyAdmin, FullyReadableRowsAdmin):
    list_display = [
        "name",
        "collection",
        "state",
        "copied",
        "show_change_counts",
        "created_at",
        "created_by",
        "published_at",
        "published_by",
    ]
    list_filter = ["status", ("collection", CollectionFilter)]
    list_select_related = ["collection", "working_copy", "created_by", "published_by"]
    list_per_page = 50

    @admin.display(description=_("draft"), ordering="pk")
    def name(self, draft: Draft) -> str:
        return f"#{draft.pk}"

    @admin.display(description=_("status"), ordering="status")
    def state(self, draft: Draft) -> SafeString:
        return render_badge(draft.status, draft.get_status_display())

    @admin.display(description=_("changes"))
    def show_change_counts(self, draft: Draft) -> str:
        """Return how many documents a published draft changed; "–" for an open draft, where counting takes too long."""
        changes = _read_changes(draft)
        counts = [
            _t("%d added") % len(changes.added) if changes.added else "",
            _t("%d changed") % len(changes.changed) if changes.changed else "",
            _t("%d removed") % len(changes.removed) if changes.removed else "",
        ]
        return ", ".join(filter(None, counts)) or "–"

    def page_context(self, request: HttpRequest, obj: Draft) -> dict[str, object]:
        copied = Document.objects.filter(collection=obj.working_copy_id if obj.is_open else None)
        unread = copied.filter(status__in=_UNREAD).count()
        failed = copied.filter(status=Document.Status.FAILED).order_by("source").values_list("source", flat=True)
        is_copying, is_published = obj.status == Draft.Status.COPYING, obj.status == Draft.Status.PUBLISHED
        changes = _read_changes(obj) if is_published else DraftChanges() if is_copying else find_draft_changes(obj)
        before, there = (None, obj.collection_id) if is_published else (obj.collection_id, obj.working_copy_id)
        may_be_published = obj.status == Draft.Status.OPEN and bool(changes) and not unread
        return {
            "title": str(obj),
            "subtitle": None,
            "draft": obj,
            "state": self.state(obj),
            "to_copy": Document.objects.filter(collection=obj.collection_id).count() if is_copying else 0,
            "is_live": unread > 0 or obj.status in (Draft.Status.COPYING, Draft.Status.PUBLISHING),
            "changes": changes,
            "groups": [
                ("added", _("Added"), changes.added, _pair_sources_with_documents(changes.added, there)),
                ("changed", _("Changed"), changes.changed, _pair_sources_with_documents(changes.changed, there)),
                ("removed", _("Removed"), changes.removed, _pair_sources_with_documents(changes.removed, before)),
            ],
            "failed": list(failed),
            "failed_documents": _pair_sources_with_documents(list(failed), obj.working_copy_id),
            "unread": unread,
            "objections": gates.find_publication_objections(obj) if may_be_published else (),
            "may_be_published": may_be_published,
            "may_publish": request.user.has_perm("retrieval.change_draft"),
            "may_add_documents": request.user.has_perm("retrieval.add_document"),
        }

    def get_urls(self) -> list[URLPattern]:
        change = "retrieval.change_draft"
        return [
            self.build_button_path("begin/<int:collection_id>/", self.begin_view, "draft_begin", "retrieval.add_draft"),
            self.build_button_path("<int:pk>/publish/", self.publish_view, "draft_publish", change),
            self.build_button_path("<int:pk>/discard/", self.discard_view, "draft_discard", change),
            *super().get_urls(),
        ]

    def begin_view(self, request: HttpRequest, collection_id: int) -> HttpResponse:
        collection = get_object_or_404(Collection.objects.curated_by(request.user), pk=collection_id)
        with self.show_errors_as_messages(request, DraftRefused):
            draft = lifecycle.begin_draft(collection, request.user)
            self.log_addition(request, draft, [{"added": {}}])
            self.tell_done(request, _t("Started: %s. Its documents are being copied.") % draft)
            if self.has_view_permission(request):
                return redirect_to(draft)
        return redirect_to(collection)

    def publish_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        draft = self._get_draft(request, pk)
        with self.show_errors_as_messages(request, DraftRefused, sentence=_t("Not published: %s")):
            try:
                draft = lifecycle.publish_draft(draft, request.user, override=read_override_reason(request))
            except PublicationRefused as refusal:
                return self.render_refusal(
                    request,
                    refusal,
                    subject=draft,
                    of=admin_link(draft),
                    kept=_t("The reason is kept with your name and the objections, and shown on the draft's page."),
                )
            message = _t("Published.")
            if draft.override:
                message = _t("Published against objections, because: %s") % draft.override
            self.log_change(request, draft, message)
            self.tell_done(request, _t("Being published: %s.") % draft)
        return redirect_to(draft)

    def discard_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        draft = self._get_draft(request, pk)
        with self.show_errors_as_messages(request, DraftRefused, sentence=_t("Not discarded: %s")):
            draft = lifecycle.discard_draft(draft)
            self.log_change(request, draft, _t("Discarded."))
            self.tell_done(request, _t("Discarded: %s.") % draft)
        return redirect_to(draft)

    def list_permitted_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return super().list_permitted_collections(request) & Collection.objects.curated_by(request.user)

    def _get_draft(self, request: HttpRequest, pk: int) -> Draft:
        drafts: QuerySet[Draft] = self.get_queryset(request).select_related("collection")
        return get_object_or_404(drafts, pk=pk)
