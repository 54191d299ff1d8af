from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.formats import date_format, localize
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from retrieval.admin.admin_rights import CollectionFilter, OpenRowsFilter
from retrieval.admin.base import ConditionFilter, badge
from retrieval.admin.document_facts import DocumentFacts, excerpt
from retrieval.admin.document_forms import UPLOADING_SCRIPT, DocumentForm
from retrieval.admin.guarded import GuardedDeletionAdmin
from retrieval.admin.uploading import UploadingAdmin
from retrieval.documents import submission
from retrieval.documents.drafts.editing import changing
from retrieval.models import Document
from retrieval.viewer.source_views import download

# What a page of the list can ask about at once.
MOST_IDS = 500


class HoldsInstructionsFilter(ConditionFilter):
    title = _("instructions to a model")
    parameter_name = "instructions"
    conditions = {"yes": (_("Yes"), Q(instruction_count__gt=0)), "no": (_("No"), Q(instruction_count=0))}


class ReviewFilter(ConditionFilter):
    title = _("review")
    parameter_name = "review"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("due", _("due")), ("planned", _("planned")), ("none", _("no date"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        today = timezone.localdate()
        chosen = {
            "due": Q(review_on__lte=today),
            "planned": Q(review_on__gt=today),
            "none": Q(review_on=None),
        }.get(self.value() or "")
        return queryset if chosen is None else queryset.filter(chosen)


@admin.register(Document)
class DocumentAdmin(DocumentFacts, UploadingAdmin, GuardedDeletionAdmin):
    list_display = [
        "name", "collection", "state", "problem", "passages", "size", "added_by", "updated", "ingested_at", "review",
    ]  # fmt: skip
    list_display_links = ["name"]
    list_filter = [
        "status",
        ReviewFilter,
        HoldsInstructionsFilter,
        ("collection", CollectionFilter),
        ("origin", OpenRowsFilter),
        "language",
        "media_type",
    ]
    list_select_related = ["collection", "added_by"]
    list_per_page = 50
    search_fields = ["title", "source"]
    ordering = ["-updated_at", "-pk"]
    actions = ["delete_selected", "read_again"]
    form = DocumentForm
    change_form_template = "admin/retrieval/document/change_form.html"
    progress_fields = [
        "state",
        "problem_in_full",
        "not_read",
        "passages_link",
        "recognised_pages",
        "instructions",
        "attempts",
        "retry_at",
        "ingested_at",
    ]
    file_fields = [
        "collection",
        "source",
        "came_in",
        "members",
        "origin_link",
        "original",
        "media_type",
        "size",
        "content_hash",
        "created_at",
        "added_by",
    ]
    fieldsets = [
        (None, {"fields": ["title", "url", "language", "metadata", "review_on", "replacement"]}),
        (_("How far it is"), {"fields": tuple(progress_fields)}),
        (_("The file"), {"fields": tuple(file_fields)}),
    ]
    readonly_fields = [*progress_fields, *file_fields]

    class Media:
        css = {"all": ["retrieval/admin.css", "retrieval/profiles.css", "retrieval/uploading.css"]}
        js = ["retrieval/admin_status.js", UPLOADING_SCRIPT]

    # The list -------------------------------------------------------------------------------------------------------

    @admin.display(description=_("document"), ordering="title")
    def name(self, document: Document) -> str:
        return str(document)

    @admin.display(description=_("status"), ordering="status")
    def state(self, document: Document) -> SafeString:
        unsettled = document.status in (Document.Status.PENDING, Document.Status.PROCESSING)
        progress: str = ""
        if document.status == Document.Status.PROCESSING:
            progress = format_html(' <progress max="100" value="{0}">{0} %</progress> {0} %', document.progress_percent)
        return format_html(
            '<span class="ragsite-status ragsite-status-{}" data-document-status="{}" data-status-url="{}"{}>'
            "{}{}</span>",
            document.status,
            document.pk,
            reverse("admin:retrieval_document_status"),
            SafeString(" data-unsettled") if unsettled else "",
            document.get_status_display(),
            progress,
        )

    @admin.display(description=_("passages"), ordering="chunk_count")
    def passages(self, document: Document) -> SafeString:
        return _fact("passages", document.chunk_count)

    @admin.display(description=_("size"), ordering="size_bytes")
    def size(self, document: Document) -> str:
        return filesizeformat(document.size_bytes)

    @admin.display(description=_("error"))
    def problem(self, document: Document) -> SafeString:
        return _fact("error", excerpt(document.error))

    @admin.display(description=_("changed"), ordering="updated_at")
    def updated(self, document: Document) -> SafeString:
        return _fact("updated", localize(localtime(document.updated_at)))

    @admin.display(description=_("review date"), ordering="review_on")
    def review(self, document: Document) -> SafeString | str:
        if document.review_on is None:
            return "-"
        day = date_format(document.review_on, "SHORT_DATE_FORMAT")
        return badge("failed", _t("due since %s") % day) if document.is_due else day

    @admin.action(description=_("Read again"), permissions=["change"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        with transaction.atomic():
            for document in queryset.order_by("pk").select_for_update(of=("self",)):
                submission.requeue(document)
            number = queryset.count()
        message = ngettext("%d document will be read again.", "%d documents will be read again.", number)
        self.message_user(request, message % number, messages.SUCCESS)

    # One document ---------------------------------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Document | None = None) -> list[Any]:
        """Without the field for a new file where there may be none."""
        (name, options), *others = super().get_fieldsets(request, obj)
        if not self.has_change_permission(request, obj):
            options = {**options, "fields": [field for field in options["fields"] if field != "replacement"]}
        return [(name, options), *others]

    def save_model(self, request: HttpRequest, obj: Document, form: ModelForm[Document], change: bool) -> None:
        """Save what the form changed and no more: a worker may be writing the rest of the row."""
        changed = [name for name in form.changed_data if name in DocumentForm.Meta.fields]
        replacement: bytes | None = form.cleaned_data.get("replacement")
        with changing(obj.collection_id):
            document = Document.objects.select_for_update().get(pk=obj.pk)
            for name in changed:
                setattr(document, name, form.cleaned_data[name])
            reread = not {"title", "language"}.isdisjoint(changed)
            if reread:
                # The title is part of every passage's index, and the language of its questions.
                submission.requeue(document, enqueue=replacement is None)
            elif changed:
                document.save(update_fields=[*changed, "updated_at"])
            document.share_metadata()
            if replacement is not None:
                reread = submission.submit(document.collection, document.source, replacement).changed
        if reread:
            self.message_user(request, _t("The document will be read again."), messages.INFO)

    # Addresses ------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        guard = self.admin_site.admin_view
        return [
            path("status/", guard(self.status_view), name="retrieval_document_status"),
            path("<int:document_id>/original/", guard(self.original_view), name="retrieval_document_original"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        return super().get_queryset(request).filter(pk__in=Document.objects.readable_by(request.user))

    def status_view(self, request: HttpRequest) -> JsonResponse:
        """How far the documents named by ``ids`` are, by id; the list asks for it while some are being read."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        ids = [int(part) for part in request.GET.get("ids", "").split(",") if part.isdecimal() and len(part) < 19]
        return JsonResponse(
            {
                str(document.pk): {
                    "badge": self.state(document),
                    "passages": str(document.chunk_count),
                    "error": excerpt(document.error),
                    "updated": localize(localtime(document.updated_at)),
                }
                for document in self.get_queryset(request).filter(pk__in=ids[:MOST_IDS])
            }
        )

    def original_view(self, request: HttpRequest, document_id: int) -> HttpResponseBase:
        """The file as it was uploaded; as a download only, because a browser would run what an HTML file holds."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return download(request, get_object_or_404(self.get_queryset(request), pk=document_id))


def requeue_all(documents: Iterable[Document]) -> int:
    """Have the documents read again; returns how many."""
    number = 0
    for document in documents:
        submission.requeue(document)
        number += 1
    return number


def documents_by_status(documents: QuerySet[Document]) -> dict[str, int]:
    return dict(documents.order_by().values_list("status").annotate(Count("pk")))


def _fact(name: str, value: object) -> SafeString:
    return format_html('<span data-document-fact="{}">{}</span>', name, value)
