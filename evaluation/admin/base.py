"""What the admin pages of evaluation share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.views.decorators.http import require_POST

from retrieval.admin.base import badge

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

    from evaluation.models import EvaluationRun, Judgement

# The admin's colours are named for what happens to documents.
_COLOURS = {
    "queued": "pending",
    "running": "processing",
    "done": "ready",
    "failed": "failed",
    "skipped": "stopped",
    "cancelled": "stopped",
}


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

    def render_page(self, request: HttpRequest, template: str, title: str, context: dict[str, Any]) -> TemplateResponse:
        """A page that is not one of Django's own."""
        shared = {**self.admin_site.each_context(request), "title": title, "opts": self.opts, "media": self.media}
        return TemplateResponse(request, f"admin/evaluation/{template}.html", {**shared, **context})

    def button_path(self, route: str, view: Callable[..., HttpResponse], name: str, *permissions: str) -> URLPattern:
        """The address of a button: of a POST by whoever has all of the permissions."""
        guarded = permission_required(permissions, raise_exception=True)(require_POST(view))
        return path(route, self.admin_site.admin_view(guarded), name=f"evaluation_{name}")


class ConditionFilter(admin.SimpleListFilter):
    """A filter whose choices are conditions; ``conditions`` has the label and the condition by the address's value."""

    conditions: dict[str, tuple[str | StrPromise, Q]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(value, label) for value, (label, _condition) in self.conditions.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.conditions.get(self.value() or "")
        return queryset if chosen is None else queryset.filter(chosen[1])


def job_badge(job: EvaluationRun | Judgement, label: object = None) -> SafeString:
    """The job's status; an attempt that failed shows before the next one."""
    if job.status == job.Status.QUEUED and job.error:
        return badge("failed", _t("failed, will be tried again"))
    return badge(_COLOURS[job.status], label or job.get_status_display())


def link(address: str, label: object) -> SafeString:
    return format_html('<a href="{}">{}</a>', address, label)
