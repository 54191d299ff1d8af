from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.formats import date_format, localize
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.timezone import localtime
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from core.admin_base import AlwaysShownRelatedFilter, FixedChoicesFilter, NamedValuesFilter, admin_link, render_badge
from retrieval.admin.curated import CollectionFilter
from retrieval.admin.document_forms import DocumentForm
from retrieval.admin.guarded import GuardedDeletionAdmin
from retrieval.admin.uploading import UploadingAdmin
from retrieval.documents import submission
from retrieval.documents.drafts.editing import lock_collections_for_change
from retrieval.documents.recognition.pages import LOW_CONFIDENCE
from retrieval.models import Chunk, Document, DocumentText
from retrieval.viewer.source_views import download

LONGEST_EXCERPT = 160


class DocumentFacts:
    @admin.display(description=_("notice"))
    def show_left_out_notice(self, document: Document) -> str:
        return document.notice or "-"

    @admin.display(description=_("passages"))
    def passages_link(self, document: Document) -> SafeString:
        label = ngettext("%d passage", "%d passages", document.chunk_count) % document.chunk_count
        return admin_link(Chunk, label, document__id__exact=document.pk)

    @admin.display(description=_("recognised pages"))
    def recognised_pages(self, document: Document) -> SafeString | str:
        text = DocumentText.objects.filter(pk=document.pk).first()
        if text is None or not text.recognised:
            return "-"
        sure = [confidence for _number, confidence in text.recognised if confidence is not None]
        context = {
            "document": document,
            "sure": sure,
            "mean": sum(sure) / len(sure) if sure else None,
            "unsure": [page for page in text.recognised if page[1] is None or page[1] < LOW_CONFIDENCE],
        }
        return render_to_string("admin/retrieval/document/_recognised.html", context)

    @admin.display(description=_("sentences that give orders to an AI"))
    def show_instructions_to_ai(self, document: Document) -> SafeString | str:
        text = DocumentText.objects.filter(pk=document.pk).first()
        if text is None or not text.instructions:
            return "-"
        found = [
            (start, end, Truncator(text.text[start:end]).chars(LONGEST_EXCERPT))
            for start, end, _rule in text.instructions
        ]
        context = {"document": document, "found": found}
        return render_to_string("admin/retrieval/document/_instructions.html", context)

    @admin.display(description=_("contains"))
    def list_member_links(self, document: Document) -> SafeString | str:
        found = document.members.order_by("source")
        items = format_html_join(
            "", "<li>{} – {}</li>", ((admin_link(member), member.get_status_display()) for member in found)
        )
        return format_html("<ul>{}</ul>", items) if items else "-"

    @admin.display(description=_("original"))
    def original_link(self, document: Document) -> SafeString:
        address = reverse("admin:retrieval_document_original", args=[document.pk])
        return format_html('<a href="{}">{}</a>', address, _t("Download"))


MOST_IDS = 500


class HoldsInstructionsFilter(FixedChoicesFilter):
    title = _("sentences that give orders to an AI")
    parameter_name = "instructions"
    conditions = {"yes": (_("Yes"), Q(instruction_count__gt=0)), "no": (_("No"), Q(instruction_count=0))}


class UnreadFilter(FixedChoicesFilter):
    title = _("wholly read")
    parameter_name = "left_out"
    conditions = {"no": (_("something was not read"), ~Q(left_out=[])), "yes": (_("Yes"), Q(left_out=[]))}


class ReviewDateFilter(FixedChoicesFilter):
    title = _("review")
    parameter_name = "review"

    @property
    def conditions(self) -> dict[str, tuple[Any, Q]]:  # type: ignore[override]  # they change by the day
        today = timezone.localdate()
        return {
            "due": (_("due"), Q(review_on__lte=today)),
            "planned": (_("planned"), Q(review_on__gt=today)),
            "none": (_("no date"), Q(review_on=None)),
        }


class DocumentSourceFilter(AlwaysShownRelatedFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = _("source")


@admin.register(Document)
class DocumentAdmin(DocumentFacts, UploadingAdmin, GuardedDeletionAdmin):
    list_display = [
        "name", "collection", "state", "problem", "passages", "size", "added_by", "show_update_time", "ingested_at",
        "review_date",
    ]  # fmt: skip
    list_display_links = ["name"]
    list_filter = [
        "status",
        ReviewDateFilter,
        HoldsInstructionsFilter,
        UnreadFilter,
        ("collection", CollectionFilter),
        ("origin", DocumentSourceFilter),
        ("language", NamedValuesFilter),
        ("media_type", NamedValuesFilter),
    ]
    list_select_related = ["collection", "added_by"]
    list_per_page = 50
    search_fields = ["title", "source"]
    ordering = ["-updated_at", "-pk"]
    actions = ["delete_selected", "read_again"]
    form = DocumentForm
    progress_fields = [
        "state",
        "error",
        "show_left_out_notice",
        "passages_link",
        "recognised_pages",
        "show_instructions_to_ai",
        "attempts",
        "retry_at",
        "ingested_at",
    ]
    file_fields = [
        "collection",
        "source",
        "parent",
        "list_member_links",
        "origin",
        "original_link",
        "media_type",
        "size",
        "content_hash",
        "created_at",
        "added_by",
    ]
    fieldsets = [
        (None, {"fields": ["title", "url", "language", "metadata", "review_on", "replacement"]}),
        (_("Progress"), {"fields": tuple(progress_fields)}),
        (_("The file"), {"fields": tuple(file_fields)}),
    ]
    readonly_fields = [*progress_fields, *file_fields]

    @admin.display(description=_("document"), ordering="sort_key")
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
        return _render_fact("passages", document.chunk_count)

    @admin.display(description=_("size"), ordering="size_bytes")
    def size(self, document: Document) -> str:
        return filesizeformat(document.size_bytes)

    @admin.display(description=_("error"))
    def problem(self, document: Document) -> SafeString:
        return _render_fact("error", Truncator(self.describe_problem(document)).chars(LONGEST_EXCERPT))

    @staticmethod
    def describe_problem(document: Document) -> str:
        return document.error or (_("Not read: %s") % document.left_out_summary if document.left_out else "")

    @admin.display(description=_("changed"), ordering="updated_at")
    def show_update_time(self, document: Document) -> SafeString:
        return _render_fact("updated", localize(localtime(document.updated_at)))

    @admin.display(description=_("review date"), ordering="review_on")
    def review_date(self, document: Document) -> SafeString | str:
        if document.review_on is None:
            return "-"
        day = date_format(document.review_on, "SHORT_DATE_FORMAT")
        return render_badge("failed", _t("due since %s") % day) if document.is_review_due else day

    @admin.action(description=_("Read the files again"), permissions=["change"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        with transaction.atomic():
            number = requeue_all(queryset)
        message = ngettext("%d document will be read again.", "%d documents will be read again.", number)
        self.message_user(request, message % number, messages.SUCCESS)

    def get_fieldsets(self, request: HttpRequest, obj: Document | None = None) -> list[Any]:
        (name, options), *others = super().get_fieldsets(request, obj)
        if not self.has_change_permission(request, obj):
            options = {**options, "fields": [field for field in options["fields"] if field != "replacement"]}
        return [(name, options), *others]

    def save_model(self, request: HttpRequest, obj: Document, form: ModelForm[Document], change: bool) -> None:
        """Save only the changed fields, because a worker may be writing the others."""
        changed = [name for name in form.changed_data if name in DocumentForm.Meta.fields]
        replacement: bytes | None = form.cleaned_data.get("replacement")
        with lock_collections_for_change(obj.collection_id):
            document = Document.objects.select_for_update().get(pk=obj.pk)
            for name in changed:
                setattr(document, name, form.cleaned_data[name])
            reread = not {"title", "language"}.isdisjoint(changed)
            if reread:
                # The document must be read again: the index contains the title, and generated questions depend on the
                # language.
                submission.requeue_document(document, enqueue=replacement is None)
            elif changed:
                document.save(update_fields=[*changed, "updated_at"])
            document.copy_metadata_to_members()
            if replacement is not None:
                reread = submission.submit(document.collection, document.source, replacement).changed
        if reread:
            self.message_user(request, _t("The document will be read again."), messages.INFO)

    def get_urls(self) -> list[URLPattern]:
        guard = self.admin_site.admin_view
        return [
            path("status/", guard(self.reading_status_view), name="retrieval_document_status"),
            path("<int:document_id>/original/", guard(self.original_view), name="retrieval_document_original"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        return super().get_queryset(request).filter(pk__in=Document.objects.readable_by(request.user))

    def reading_status_view(self, request: HttpRequest) -> JsonResponse:
        """Return how far the documents in ``ids`` were read, as JSON."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        ids = [int(part) for part in request.GET.get("ids", "").split(",") if part.isdecimal() and len(part) < 19]
        return JsonResponse(
            {
                str(document.pk): {
                    "badge": self.state(document),
                    "passages": str(document.chunk_count),
                    "error": Truncator(self.describe_problem(document)).chars(LONGEST_EXCERPT),
                    "updated": localize(localtime(document.updated_at)),
                }
                for document in self.get_queryset(request).filter(pk__in=ids[:MOST_IDS])
            }
        )

    def original_view(self, request: HttpRequest, document_id: int) -> HttpResponseBase:
        """Send the uploaded file as a download, because a browser would run the scripts of an HTML page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return download(request, get_object_or_404(self.get_queryset(request), pk=document_id))


def requeue_all(documents: QuerySet[Document]) -> int:
    locked = list(documents.order_by("pk").select_for_update(of=("self",)))
    for document in locked:
        submission.requeue_document(document)
    return len(locked)


def _render_fact(name: str, value: object) -> SafeString:
    return format_html('<span data-document-fact="{}">{}</span>', name, value)
