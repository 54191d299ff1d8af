"""What admin pages share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.views.decorators.http import require_POST

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

    from retrieval.gates import PublicationRefused


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """What the site writes and people only look at."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class PageAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """An admin with pages of its own, whose page of an object shows more than its fields."""

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What the template of the object's page needs beside Django's own context."""
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
        """A page that is not one of Django's own."""
        shared = {**self.admin_site.each_context(request), "title": title, "opts": self.opts, "media": self.media}
        page = f"admin/{self.opts.app_label}/{template}.html"
        return TemplateResponse(request, page, {**shared, **context}, status=status)

    def render_refusal(self, request: HttpRequest, refusal: PublicationRefused, **context: Any) -> TemplateResponse:
        """Why ``subject`` is not published and, for those who may, the form to publish it all the same."""
        context |= {
            "objections": refusal.objections,
            "may_override": request.user.has_perm("retrieval.override_gate"),
            "has_no_reason": "override" in request.POST,
        }
        return self.render_page(request, "refused", _t("Not published: %s") % context["subject"], context, status=409)

    def button_path(self, route: str, view: Callable[..., HttpResponse], name: str, *permissions: str) -> URLPattern:
        """The address of a button: of a POST by whoever has all of the permissions."""
        guarded = permission_required(permissions, raise_exception=True)(require_POST(view))
        return path(route, self.admin_site.admin_view(guarded), name=f"{self.opts.app_label}_{name}")


class ConditionFilter(admin.SimpleListFilter):
    """A filter whose choices are conditions; ``conditions`` has the label and the condition by the address's value."""

    conditions: dict[str, tuple[str | StrPromise, Q]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(value, label) for value, (label, _condition) in self.conditions.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.conditions.get(self.value() or "")
        return queryset if chosen is None else queryset.filter(chosen[1])


def read_override(request: HttpRequest) -> str:
    """The reason to publish against objections, of whoever may; empty for others."""
    return request.POST.get("override", "") if request.user.has_perm("retrieval.override_gate") else ""


def badge(status: str, label: object) -> SafeString:
    """A status in its colour, and in words for those who do not see colours."""
    return format_html('<span class="ragsite-status ragsite-status-{}">{}</span>', status, label)
