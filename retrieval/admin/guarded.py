"""What belongs to a collection is changed in the admin while the collection's documents may be; else it is shown, with
the reason and where to change it instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.admin.admin_rights import CuratedAdmin
from retrieval.admin.base import PageAdmin
from retrieval.documents.drafts.editing import changing, draft_of, reason_not_to_change
from retrieval.exceptions import DocumentRejected
from retrieval.models import Chunk, Document, Draft


@dataclass(frozen=True, slots=True)
class ChangeRights:
    """Why a document may not be changed where it is (empty: it may), and the draft that has to do with it.

    The document is part of ``draft`` or, with ``instead``, to be changed there; ``counterpart`` is then the address of
    the same source in it, empty when there is none.
    """

    reason: str
    draft: Draft | None = None
    instead: bool = False
    counterpart: str = ""


class GuardedAdmin(PageAdmin, CuratedAdmin):
    """Documents, or what is made of them."""

    def may_change(self, request: HttpRequest, obj: Document | Chunk | None = None) -> bool:
        """Whether the user could change it, were its collection open to changes."""
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Document | Chunk | None = None) -> bool:
        return self.may_change(request, obj) and (obj is None or not find_change_rights(request, obj).reason)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        found = self.get_object(request, object_id) if object_id else None
        if found is None or not self.has_view_permission(request, found):
            return super().changeform_view(request, object_id, form_url, extra_context)
        reason = find_change_rights(request, found).reason
        if request.method == "POST" and reason and self.may_change(request, found):
            return self._refuse(request, reason)
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except DocumentRejected as error:
            # A draft was begun, or published, after the look above.
            return self._refuse(request, str(error))

    def page_context(self, request: HttpRequest, obj: Document | Chunk) -> dict[str, Any]:
        return {
            "standing": find_change_rights(request, obj),
            "has_drafts": request.user.has_perm("retrieval.view_draft"),
        }

    def _refuse(self, request: HttpRequest, reason: str) -> HttpResponse:
        self.message_user(request, reason, messages.ERROR)
        return HttpResponseRedirect(request.path)


class GuardedDeletionAdmin(GuardedAdmin):
    """Documents, which can be deleted while their collection may be changed."""

    def has_delete_permission(self, request: HttpRequest, obj: Document | None = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or not find_change_rights(request, obj).reason)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        document = self.get_object(request, object_id)
        if document is None or not super().has_delete_permission(request, document):
            return super().delete_view(request, object_id, extra_context)
        try:
            with changing(document.collection_id):
                return super().delete_view(request, object_id, extra_context)
        except DocumentRejected as error:
            self.message_user(request, _t("Nothing was deleted. %s") % error, messages.ERROR)
            return HttpResponseRedirect(reverse("admin:retrieval_document_change", args=[document.pk]))

    @admin.action(description=_("Delete selected %(verbose_name_plural)s"), permissions=["delete"])
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Document]) -> HttpResponse | None:
        """All of them, or none when one may not be deleted."""
        try:
            with changing(*queryset.order_by().values_list("collection", flat=True).distinct()):
                return delete_selected(self, request, queryset)
        except DocumentRejected as error:
            self.message_user(request, _t("Nothing was deleted. %s") % error, messages.ERROR)
            return None

    def get_deleted_objects(
        self, objs: QuerySet[Document] | Sequence[Document], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """What would go, counted: a document's thousands of passages are neither listed nor asked permission for."""
        documents = list(objs)
        counts = {
            str(Document._meta.verbose_name_plural): len(documents),
            str(Chunk._meta.verbose_name_plural): Chunk.objects.filter(document__in=documents).count(),
        }
        missing = set() if self.has_delete_permission(request) else {str(Document._meta.verbose_name)}
        return [str(document) for document in documents], counts, missing, []


def find_change_rights(request: HttpRequest, found: Document | Chunk) -> ChangeRights:
    """Looked up once a request, however often the admin asks for permission."""
    document = found.document if isinstance(found, Chunk) else found
    known: dict[int, ChangeRights] = request.__dict__.setdefault("standing_of_documents", {})
    if document.pk not in known:
        known[document.pk] = _load_change_rights(document)
    return known[document.pk]


def _load_change_rights(document: Document) -> ChangeRights:
    reason = reason_not_to_change(document.collection)
    if (draft := draft_of(document.collection)) is not None:
        return ChangeRights(reason, draft)
    if (draft := document.collection.drafts.open().first()) is None:
        return ChangeRights(reason)
    there = Document.objects.filter(collection=draft.working_copy_id, source=document.source).first()
    address = reverse("admin:retrieval_document_change", args=[there.pk]) if there else ""
    return ChangeRights(reason, draft, instead=True, counterpart=address)
