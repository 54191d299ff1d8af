"""Base classes of the admin pages of documents and passages. They refuse changes that need a draft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.actions import delete_selected
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.admin_base import PageAdmin, redirect_to, summarise_deletion
from retrieval.admin.curated import CuratedRowsAdmin
from retrieval.documents.drafts.editing import find_draft, find_reason_not_to_change, lock_collections_for_change
from retrieval.exceptions import DocumentRejected
from retrieval.models import Chunk, Document

if TYPE_CHECKING:
    pass


class GuardedAdmin(PageAdmin, CuratedRowsAdmin):
    def has_change_permission(self, request: HttpRequest, obj: Document | Chunk | None = None) -> bool:
        """Return False if the form must not be shown.

        ``lock_collections_for_change`` refuses a submitted form with a reason.
        """
        may = super().has_change_permission(request, obj)
        return may and (obj is None or request.method == "POST" or not find_reason_not_to_edit(request, obj))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        with self.show_errors_as_messages(request, DocumentRejected):
            return super().changeform_view(request, object_id, form_url, extra_context)
        return HttpResponseRedirect(request.path)

    def page_context(self, request: HttpRequest, obj: Document | Chunk) -> dict[str, object]:
        document = obj.document if isinstance(obj, Chunk) else obj
        in_draft = find_draft(document.collection)
        instead = document.collection.drafts.filter_open().first()
        same = Document.objects.filter(collection=instead.working_copy_id, source=document.source) if instead else None
        return {
            "reason": find_reason_not_to_edit(request, obj),
            "in_draft": in_draft,
            "draft_instead": instead,
            "same_in_draft": same.first() if same is not None else None,
            "has_drafts": request.user.has_perm("retrieval.view_draft"),
        }


class GuardedDeletionAdmin(GuardedAdmin):
    def has_delete_permission(self, request: HttpRequest, obj: Document | None = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or not find_reason_not_to_edit(request, obj))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        document = self.get_object(request, object_id)
        if document is None or not super().has_delete_permission(request, document):
            return super().delete_view(request, object_id, extra_context)
        sentence = _t("Nothing was deleted. %s")
        with (
            self.show_errors_as_messages(request, DocumentRejected, sentence=sentence),
            lock_collections_for_change(document.collection_id),
        ):
            return super().delete_view(request, object_id, extra_context)
        return redirect_to(document)

    @admin.action(description=_("Delete selected %(verbose_name_plural)s"), permissions=["delete"])
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Document]) -> HttpResponse | None:
        """Delete all selected documents, or none if one of them may not be deleted."""
        collections = queryset.order_by().values_list("collection", flat=True).distinct()
        sentence = _t("Nothing was deleted. %s")
        with (
            self.show_errors_as_messages(request, DocumentRejected, sentence=sentence),
            lock_collections_for_change(*collections),
        ):
            return delete_selected(self, request, queryset)
        return None

    def get_deleted_objects(
        self, objs: QuerySet[Document] | Sequence[Document], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        return summarise_deletion(
            Document, objs, Chunk.objects.filter(document__in=objs), may_delete=self.has_delete_permission(request)
        )


def find_reason_not_to_edit(request: HttpRequest, found: Document | Chunk) -> str:
    """Return why the document may not be changed now, as a sentence; empty if it may be changed."""
    document = found.document if isinstance(found, Chunk) else found
    known: dict[int, str] = request.__dict__.setdefault("reasons_not_to_change", {})
    if document.collection_id not in known:
        known[document.collection_id] = find_reason_not_to_change(document.collection)
    return known[document.collection_id]
