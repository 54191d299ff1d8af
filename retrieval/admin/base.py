"""Base classes of admin pages: their look, the rights of staff, and read-only rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.contrib.auth.decorators import permission_required
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from retrieval.documents.drafts.editing import changing, draft_of, reason_not_to_change
from retrieval.exceptions import DocumentRejected
from retrieval.models import Chunk, Collection, CollectionGrant, Document
from retrieval.models.collection import CollectionQuerySet, is_superuser
from retrieval.rights import seen_whole_by

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

    from retrieval.gates import PublicationRefused

# Rights in the admin: staff meet the rows of collections that they may curate, and no others.


class CuratedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Rows of collections that the user may curate. Other rows do not exist for the user, even by their ids."""

    collection_path = "collection"

    def open_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return Collection.objects.curated_by(request.user)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        if is_superuser(request.user):
            return rows
        return rows.filter(**{f"{self.collection_path}__in": self.open_collections(request)})


class WholeCollectionAdmin(CuratedAdmin):
    """Rows that can reveal any document of their collection: shown only to users who may read all of them."""

    def open_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return seen_whole_by(request.user)


class NamedValuesFilter(admin.AllValuesFieldListFilter):
    """A filter by a column's values, in which the empty value has a label too."""

    def choices(self, changelist: Any) -> Any:
        for choice in super().choices(changelist):
            yield {**choice, "display": choice["display"] or _t("(none)")}


class CollectionFilter(admin.RelatedFieldListFilter):
    """A filter by the collections that the user may read; other names are hidden."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        readable = Collection.objects.readable_by(request.user).values("pk")
        choices: list[tuple[str, Any]] = field.get_choices(include_blank=False, limit_choices_to={"pk__in": readable})
        return choices

    def has_output(self) -> bool:
        """Shown also with only one collection: without it, Django would ignore the filter in links from other pages."""
        return True


class OpenRowsFilter(admin.RelatedOnlyFieldListFilter):
    """A filter by the objects that the rows visible to the user refer to."""

    def has_output(self) -> bool:
        return True


class GrantInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    """The grants of a collection, for users who may change it."""

    model = CollectionGrant
    extra = 0
    fields = ["group", "user", "role"]
    verbose_name_plural = _("access of people and groups")

    def get_queryset(self, request: HttpRequest) -> QuerySet[CollectionGrant]:
        # Django's own asks for a permission that no collection needs to know of.
        return CollectionGrant.objects.select_related("group", "user")

    def has_change_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        return may_manage(request, obj)

    has_view_permission = has_add_permission = has_delete_permission = has_change_permission


def may_manage(request: HttpRequest, collection: Collection | None = None) -> bool:
    """Whether the user may change the collection's settings and grants: by a grant as its manager, or, if staff need no
    grant, by the permission to change collections.
    """
    has_permission = request.user.has_perm("retrieval.change_collection")
    if collection is None or collection.pk is None:
        return has_permission
    managed = Collection.objects.filter(pk=collection.pk)
    if has_permission:
        return managed.managed_by(request.user).exists()
    return managed.granted_to(request.user, CollectionGrant.Role.MANAGER).exists()


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Rows that the site writes and people only read."""

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Who could change the rows may apply the page's actions to them."""
        return super().has_change_permission(request)


class SuperuserAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Rows with texts of any collection: shown to superusers alone."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_superuser(request.user)

    has_add_permission = has_change_permission = has_delete_permission = has_view_permission


class PageAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """An admin with pages of its own, whose object page shows more than the object's fields."""

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        """Only for a new collection: addresses contain the short name of an existing one."""
        return {} if obj else dict(self.prepopulated_fields)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """The context that the object page's template needs in addition to Django's."""
        return {}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj = kwargs.get("obj")
        if obj is not None:
            context = {**context, **self.page_context(request, obj)}
        return super().render_change_form(request, context, *args, **kwargs)

    def render_page(
        self, request: HttpRequest, template: str, title: str, context: dict[str, Any], status: int | None = None
    ) -> TemplateResponse:
        """Render a page that is not one of Django's own."""
        shared = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "has_view_permission": self.has_view_permission(request),
        }
        page = f"admin/{self.opts.app_label}/{template}.html"
        return TemplateResponse(request, page, {**shared, **context}, status=status)

    def render_refusal(self, request: HttpRequest, refusal: PublicationRefused, **context: Any) -> TemplateResponse:
        """A page that says why ``subject`` is not published, with a form to publish it anyway for users who may."""
        context |= {
            "objections": refusal.objections,
            "may_override": request.user.has_perm("retrieval.override_gate"),
            "has_no_reason": "override" in request.POST,
        }
        return self.render_page(request, "refused", _t("Not published: %s") % context["subject"], context, status=409)

    def button_path(self, route: str, view: Callable[..., HttpResponse], name: str, *permissions: str) -> URLPattern:
        """The URL pattern of a button: a POST by users with all of the permissions."""
        guarded = permission_required(permissions, raise_exception=True)(require_POST(view))
        return path(route, self.admin_site.admin_view(guarded), name=f"{self.opts.app_label}_{name}")


class ConditionFilter(admin.SimpleListFilter):
    """A filter whose choices are conditions; ``conditions`` maps the value in the address to label and condition."""

    conditions: dict[str, tuple[str | StrPromise, Q]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(value, label) for value, (label, _condition) in self.conditions.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.conditions.get(self.value() or "")
        return queryset if chosen is None else queryset.filter(chosen[1])


def read_override(request: HttpRequest) -> str:
    """The reason to publish against objections; empty if the user may not."""
    return request.POST.get("override", "") if request.user.has_perm("retrieval.override_gate") else ""


def admin_link(target: Model | type[Model], label: object = None, **narrowed: object) -> SafeString:
    """A link to the admin's page of a row, or to the list of a model, ``narrowed`` by filters."""
    names = f"admin:{target._meta.app_label}_{target._meta.model_name}"
    if isinstance(target, Model):
        address = reverse(f"{names}_change", args=[target.pk])
    else:
        address = f"{reverse(f'{names}_changelist')}?{urlencode(narrowed)}"
    return format_html('<a href="{}">{}</a>', address, target if label is None else label)


def badge(status: str, label: object) -> SafeString:
    """A status as a coloured label with its name."""
    return format_html('<span class="ragsite-status ragsite-status-{}">{}</span>', status, label)


def job_badge(job: Any, label: object = None) -> SafeString:
    """The status of a job; between attempts, the failed attempt is shown."""
    if job.status == job.Status.QUEUED and job.error:
        return badge("failed", _t("failed, will be tried again"))
    return badge(job.status, label or job.get_status_display())


# What belongs to a collection is changed in the admin while the collection's documents may be; else it is shown, with
# the reason and where to change it instead.


class GuardedAdmin(PageAdmin, CuratedAdmin):
    """Documents, or what is made of them."""

    def has_change_permission(self, request: HttpRequest, obj: Document | Chunk | None = None) -> bool:
        """A form that is sent is refused with the reason, by ``changing``."""
        may = super().has_change_permission(request, obj)
        return may and (obj is None or request.method == "POST" or not find_reason(request, obj))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except DocumentRejected as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(request.path)

    def page_context(self, request: HttpRequest, obj: Document | Chunk) -> dict[str, Any]:
        document = obj.document if isinstance(obj, Chunk) else obj
        in_draft = draft_of(document.collection)
        instead = document.collection.drafts.open().first()
        same = Document.objects.filter(collection=instead.working_copy_id, source=document.source) if instead else None
        return {
            "reason": find_reason(request, obj),
            "in_draft": in_draft,
            "draft_instead": instead,
            "same_in_draft": same.first() if same is not None else None,
            "has_drafts": request.user.has_perm("retrieval.view_draft"),
        }


class GuardedDeletionAdmin(GuardedAdmin):
    """Documents, which can be deleted while their collection may be changed."""

    def has_delete_permission(self, request: HttpRequest, obj: Document | None = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or not find_reason(request, obj))

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
            return redirect("admin:retrieval_document_change", document.pk)

    @admin.action(description=_("Delete selected %(verbose_name_plural)s"), permissions=["delete"])
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Document]) -> HttpResponse | None:
        """Delete all of them, or none if one may not be deleted."""
        try:
            with changing(*queryset.order_by().values_list("collection", flat=True).distinct()):
                return delete_selected(self, request, queryset)
        except DocumentRejected as error:
            self.message_user(request, _t("Nothing was deleted. %s") % error, messages.ERROR)
            return None

    def get_deleted_objects(
        self, objs: QuerySet[Document] | Sequence[Document], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        return count_deletion(
            Document, objs, Chunk.objects.filter(document__in=objs), may=self.has_delete_permission(request)
        )


def count_deletion(
    model: type[Model], objs: QuerySet[Any] | Sequence[Any], *belonging: QuerySet[Any], may: bool
) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
    """The content of Django's page of a deletion, as counts: thousands of passages are not listed one by one, and no
    permission is checked for each.
    """
    counts = {str(model._meta.verbose_name_plural): len(objs)}
    counts |= {str(rows.model._meta.verbose_name_plural): rows.count() for rows in belonging}
    return list(map(str, objs)), counts, set() if may else {str(model._meta.verbose_name)}, []


def find_reason(request: HttpRequest, found: Document | Chunk) -> str:
    """Why the document may not be changed now; cached for the request, because the admin asks often."""
    document = found.document if isinstance(found, Chunk) else found
    known: dict[int, str] = request.__dict__.setdefault("reasons_not_to_change", {})
    if document.collection_id not in known:
        known[document.collection_id] = reason_not_to_change(document.collection)
    return known[document.collection_id]
