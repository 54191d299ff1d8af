from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.views.decorators.http import require_POST

from core.users import is_superuser

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise


def is_asked_by_script(request: HttpRequest) -> bool:
    return request.accepts("application/json") and not request.accepts("text/html")


class NamedValuesFilter(admin.AllValuesFieldListFilter):
    """A filter of an admin list by the values of a column. An empty value is shown with a label."""

    def choices(self, changelist: Any) -> Any:
        for choice in super().choices(changelist):
            yield {**choice, "display": choice["display"] or _t("(none)")}


class AlwaysShownRelatedFilter(admin.RelatedOnlyFieldListFilter):
    """A filter of an admin list by a related object. Unlike Django's, it is also shown with only one choice."""

    def has_output(self) -> bool:
        return True


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission

    def has_act_permission(self, request: HttpRequest) -> bool:
        return super().has_change_permission(request)


class SuperuserAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Base class of admin pages for superusers only: they show texts from any collection."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_superuser(request.user)

    has_add_permission = has_change_permission = has_delete_permission = has_view_permission


@dataclass(frozen=True, slots=True)
class _RefusalReporter:
    """A context manager that calls ``tell`` with the error of a refused action, instead of raising the error.

    It is a class, because mypy assumes that a ``@contextmanager`` function never suppresses an error.
    """

    tell: Callable[[BaseException], None]
    refusals: tuple[type[Exception], ...]

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if not isinstance(error, self.refusals):
            return False
        self.tell(error)
        return True


class ButtonAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Base class of admin pages with buttons that send a POST request. The response is a redirect."""

    def build_button_path(
        self, route: str, view: Callable[..., HttpResponse], name: str, *permissions: str
    ) -> URLPattern:
        """Return the URL pattern of a view that a button calls by POST. Callers need all ``permissions``."""
        guarded = permission_required(permissions, raise_exception=True)(require_POST(view))
        return path(route, self.admin_site.admin_view(guarded), name=f"{self.opts.app_label}_{name}")

    def show_errors_as_messages(
        self, request: HttpRequest, *refusals: type[Exception], sentence: str = "%s"
    ) -> _RefusalReporter:
        """Return a context manager that shows an error from its ``with`` block to the user, instead of raising it."""
        return _RefusalReporter(lambda error: self.message_user(request, sentence % error, messages.ERROR), refusals)

    def tell_done(self, request: HttpRequest, message: str) -> None:
        self.message_user(request, message, messages.SUCCESS)


class PageAdmin(ButtonAdmin):
    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        return {} if obj else dict(self.prepopulated_fields)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, object]:
        return {}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj = kwargs.get("obj")
        if obj is not None:
            context = {**context, **self.page_context(request, obj)}
        return super().render_change_form(request, context, *args, **kwargs)

    def render_page(
        self, request: HttpRequest, template: str, title: str, context: Mapping[str, object], status: int | None = None
    ) -> TemplateResponse:
        shared = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "has_view_permission": self.has_view_permission(request),
        }
        page = f"admin/{self.opts.app_label}/{template}.html"
        return TemplateResponse(request, page, {**shared, **context}, status=status)


class FixedChoicesFilter(admin.SimpleListFilter):
    """A filter of an admin list with fixed choices.

    ``conditions`` maps the value in the URL's query to a label and a condition.
    """

    conditions: dict[str, tuple[str | StrPromise, Q]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(value, label) for value, (label, _condition) in self.conditions.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.conditions.get(self.value() or "")
        return queryset if chosen is None else queryset.filter(chosen[1])


class NumberRangeFilter(admin.FieldListFilter):
    """An admin list's filter for a number column. The user chooses a range or types its limits.

    ``stretches`` are the ranges: a label, the first number, and the number after the last (None: no limit).
    """

    template = "admin/stretch_filter.html"
    stretches: tuple[tuple[str | StrPromise, float | None, float | None], ...] = ()

    def expected_parameters(self) -> list[str | None]:
        return [*self._list_lookup_names()]

    def _list_lookup_names(self) -> tuple[str, str]:
        return f"{self.field_path}__gte", f"{self.field_path}__lt"

    def list_typed_bounds(self) -> list[str]:
        """Return the two limits as the user typed them; "" for a missing limit."""
        found = (self.used_parameters.get(name) for name in self._list_lookup_names())
        return ["" if value is None else str(value[-1] if isinstance(value, list) else value) for value in found]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        given = zip(self._list_lookup_names(), self.list_typed_bounds(), strict=True)
        self.used_parameters = {name: [value] for name, value in given if value}
        found: QuerySet[Any] | None = super().queryset(request, queryset)
        return queryset if found is None else found

    def get_facet_counts(self, pk_attname: str, filtered_qs: QuerySet[Any]) -> dict[str, Count]:
        return {
            f"{number}__c": Count(pk_attname, filter=Q(**self._build_range_lookups(labelled_range)))
            for number, labelled_range in enumerate(self.stretches)
        }

    def _build_range_lookups(self, labelled_range: tuple[object, float | None, float | None]) -> dict[str, float]:
        bounds = zip(self._list_lookup_names(), labelled_range[1:], strict=True)
        return {name: bound for name, bound in bounds if bound is not None}

    def choices(self, changelist: Any) -> Any:
        own = self._list_lookup_names()
        self.kept = [(name, value) for name, value in changelist.params.items() if name not in (*own, "p", "e")]
        counts = self.get_facet_queryset(changelist) if changelist.add_facets else {}
        given = self.list_typed_bounds()
        yield {
            "selected": not any(given),
            "query_string": changelist.get_query_string(remove=own),
            "display": _t("All"),
        }
        for number, labelled_range in enumerate(self.stretches):
            lookups = self._build_range_lookups(labelled_range)
            count = f" ({counts[f'{number}__c']})" if counts else ""
            yield {
                "selected": given == [str(lookups.get(name, "")) for name in own],
                "query_string": changelist.get_query_string({name: lookups.get(name) for name in own}),
                "display": f"{labelled_range[0]}{count}",
            }


def get_admin_url_name(target: Model | type[Model]) -> str:
    """Return the URL name of the admin's page for a row, or of the list of a model."""
    page = "change" if isinstance(target, Model) else "changelist"
    return f"admin:{target._meta.app_label}_{target._meta.model_name}_{page}"


def redirect_to(target: Model | type[Model]) -> HttpResponseRedirect:
    return redirect(get_admin_url_name(target), *([target.pk] if isinstance(target, Model) else []))


def admin_link(target: Model | type[Model], label: object = None, **narrowed: object) -> SafeString:
    if isinstance(target, Model):
        address = reverse(get_admin_url_name(target), args=[target.pk])
    else:
        address = f"{reverse(get_admin_url_name(target))}?{urlencode(narrowed)}"
    return format_html('<a href="{}">{}</a>', address, target if label is None else label)


def render_badge(status: str, label: object) -> SafeString:
    return format_html('<span class="ragsite-status ragsite-status-{}">{}</span>', status, label)


def render_job_badge(job: Any, label: object = None) -> SafeString:
    """Return the job's status as a badge, or its error if another attempt follows."""
    if job.status == job.Status.QUEUED and job.error:
        return render_badge("failed", _t("failed, will be tried again"))
    return render_badge(job.status, label or job.get_status_display())


def summarise_deletion(
    model: type[Model], objs: QuerySet[Any] | Sequence[Any], *belonging: QuerySet[Any], may_delete: bool
) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
    """Return the data for Django's delete confirmation page, with counts instead of a list of all deleted rows."""
    counts = {str(model._meta.verbose_name_plural): len(objs)}
    counts |= {str(rows.model._meta.verbose_name_plural): rows.count() for rows in belonging}
    return list(map(str, objs)), counts, set() if may_delete else {str(model._meta.verbose_name)}, []
