from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AdminRadioSelect
from django.core.exceptions import NON_FIELD_ERRORS
from django.db import transaction
from django.db.models import Count, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from core.admin_base import PageAdmin, admin_link, is_asked_by_script, redirect_to, summarise_deletion
from core.users import get_account
from retrieval.admin.collection_filters import FilterInline
from retrieval.admin.curated import CuratedRowsAdmin
from retrieval.admin.document_admin import requeue_all
from retrieval.admin.document_forms import build_drop_zone_context, build_upload_context
from retrieval.admin.grants import GrantInline, list_editors_without_admin_access, may_manage
from retrieval.documents.drafts.editing import find_draft, find_reason_not_to_change
from retrieval.gates import is_changeable_only_in_drafts
from retrieval.models import Chunk, Collection, CollectionStatistics, Document
from retrieval.models.collection import Visibility
from retrieval.rights.staff import grant_management

MEANINGS = {
    Visibility.PUBLIC: _(
        "Visitors without an account too, unless this site asks everybody to sign in. Over the API: every key. "
        "In the widget on other sites: yes."
    ),
    Visibility.SIGNED_IN: _("Every account of this site, and its keys over the API. In the widget: nobody."),
    Visibility.STAFF: _("Accounts with staff status, and their keys over the API. In the widget: nobody."),
    Visibility.GRANTED: _(
        "Nobody but the people and groups to whom you give access on its page, their keys over the API, and "
        "superusers. "
        "In the widget: nobody."
    ),
}


class CollectionChangeList(ChangeList):
    """A list of collections without the working copies of drafts.

    A working copy is a collection in which a draft's unpublished documents are edited (see `Draft`).
    """

    root_queryset: QuerySet[Collection]

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[Collection]:
        self.root_queryset = self.root_queryset.in_service()  # type: ignore[attr-defined]  # its custom method
        return super().get_queryset(request, exclude_parameters)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        counts = count_documents_by_status(self.result_list)
        for collection in self.result_list:
            vars(collection)["count_documents_by_status"] = counts[collection.pk]


@admin.register(Collection)
class CollectionAdmin(PageAdmin, CuratedRowsAdmin):
    collection_path = "pk"
    list_display = ["name", "slug", "languages", "visibility", "documents", "passages"]
    list_filter = ["visibility", "text_search_configuration"]
    search_fields = ["name", "slug"]
    prepopulated_fields = {"slug": ["name"]}
    fields = (
        "name",
        "slug",
        "description",
        "text_search_configuration",
        "visibility",
        "is_searched_by_name",
        "suggested_questions",
    )
    readonly_fields = ("languages", "documents", "passages", "created_at")
    inlines = [FilterInline, GrantInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        return super().get_queryset(request).select_related("statistics")

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "visibility":
            kwargs["widget"] = AdminRadioSelect()
            kwargs["choices"] = [
                (choice.value, format_html("{}<small>{}</small>", choice.label, MEANINGS[choice]))
                for choice in Visibility
            ]
            kwargs["help_text"] = _(
                "A new collection is closed until you choose otherwise. The people and groups to whom you give access "
                "on its page may ask it in any case."
            )
        return super().formfield_for_choice_field(db_field, request, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, str | list[str]]:
        # A new collection has no readers, so that its documents are not shown by accident.
        return {"visibility": Visibility.GRANTED.value, **super().get_changeform_initial_data(request)}

    def get_fields(self, request: HttpRequest, obj: Collection | None = None) -> list[Any]:
        return [*self.fields, *self.readonly_fields] if obj else list(self.fields)

    def get_readonly_fields(self, request: HttpRequest, obj: Collection | None = None) -> list[str]:
        """Return the read-only fields, including those that are fixed while the collection has a draft."""
        locked = []
        if obj is not None and find_draft(obj) is not None:
            locked = ["slug", "text_search_configuration", "visibility"]
        elif obj is not None and find_reason_not_to_change(obj):
            locked = ["text_search_configuration"]
        return [*self.readonly_fields, *locked]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """Show the form of a new collection, which also takes files."""
        may_upload = request.user.has_perm("retrieval.add_document")
        context = {
            **(build_drop_zone_context() if may_upload else {}),
            "may_upload": may_upload,
            **(extra_context or {}),
        }
        response = super().add_view(request, form_url, context)
        if isinstance(response, TemplateResponse) and request.method == "POST" and is_asked_by_script(request):
            return JsonResponse({"errors": _list_errors(response)}, status=400)
        return response

    def response_add(self, request: HttpRequest, obj: Collection, post_url_continue: str | None = None) -> HttpResponse:
        if is_asked_by_script(request):
            address = reverse("admin:retrieval_collection_change", args=[obj.pk])
            return JsonResponse({"collection": {"pk": obj.pk, "name": obj.name}, "url": address})
        return super().response_add(request, obj, post_url_continue)

    def response_post_save_add(self, request: HttpRequest, obj: Collection) -> HttpResponseRedirect:
        return redirect_to(obj)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CollectionChangeList

    def has_change_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        return may_manage(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or (may_manage(request, obj) and find_draft(obj) is None))

    def get_inlines(self, request: HttpRequest, obj: Collection | None) -> list[Any]:
        if obj is None:
            return [GrantInline]
        return [] if find_draft(obj) is not None else list(self.inlines)

    def page_context(self, request: HttpRequest, obj: Collection) -> dict[str, object]:
        return {
            "draft_it_is_of": find_draft(obj),
            "open_draft": obj.drafts.filter_open().first(),
            "is_guarded": is_changeable_only_in_drafts(obj),
            "may_begin": request.user.has_perm("retrieval.add_draft"),
            "has_drafts": request.user.has_perm("retrieval.view_draft"),
            "is_empty": not obj.documents.exists(),
            **build_upload_context(request.user, obj),
        }

    @admin.display(description=_("documents"))
    def documents(self, collection: Collection) -> SafeString:
        counts = vars(collection).get("count_documents_by_status")
        if counts is None:
            counts = count_documents_by_status([collection])[collection.pk]
        label = str(sum(counts.values()))
        others = [
            f"{counts[status]} {status.label}"
            for status in (Document.Status.PENDING, Document.Status.PROCESSING, Document.Status.FAILED)
            if counts.get(status)
        ]
        if others:
            label += f" ({', '.join(others)})"
        return admin_link(Document, label, collection__id__exact=collection.pk)

    @admin.display(description=_("language"))
    def languages(self, collection: Collection) -> str:
        return collection.languages or "–"

    @admin.display(description=_("passages"))
    def passages(self, collection: Collection) -> int:
        try:
            return collection.statistics.chunks
        except CollectionStatistics.DoesNotExist:
            return 0

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if names := list_editors_without_admin_access(form.instance):
            message = _("Without staff status, %s cannot open these pages. An administrator of accounts can give it.")
            self.message_user(request, message % ", ".join(names), messages.WARNING)

    def save_model(self, request: HttpRequest, obj: Collection, form: ModelForm[Collection], change: bool) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            if not change:
                grant_management(obj, get_account(request))
            if not change or "text_search_configuration" not in form.changed_data:
                return
            number = requeue_all(obj.documents.all())
        message = ngettext(
            "%d document will be read again, because words are reduced differently now.",
            "%d documents will be read again, because words are reduced differently now.",
            number,
        )
        self.message_user(request, message % number, messages.INFO)

    def get_deleted_objects(
        self, objs: QuerySet[Collection] | Sequence[Collection], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        may = all(self.has_delete_permission(request, collection) for collection in objs)
        belonging = (model.objects.filter(collection__in=objs) for model in (Document, Chunk))
        return summarise_deletion(Collection, objs, *belonging, may_delete=may)


def _list_errors(response: TemplateResponse) -> dict[str, list[str]]:
    context: Any = response.context_data
    inlines = [inline.formset for inline in context["inline_admin_formsets"]]
    found: dict[str, list[str]] = defaultdict(list)
    for form in [context["adminform"].form, *(form for formset in inlines for form in formset.forms)]:
        for name, errors in form.errors.items():
            found["" if name == NON_FIELD_ERRORS else form[name].auto_id] += map(str, errors)
    for formset in inlines:
        found[""] += map(str, formset.non_form_errors())
    return {field: sentences for field, sentences in found.items() if sentences}


def count_documents_by_status(collections: Sequence[Collection]) -> dict[int, dict[str, int]]:
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    documents = Document.objects.filter(collection__in=collections).order_by()
    for collection, status, number in documents.values_list("collection", "status").annotate(Count("pk")):
        counts[collection][status] = number
    return counts
