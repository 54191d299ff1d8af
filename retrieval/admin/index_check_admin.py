from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.admin.base import ReadOnlyAdmin, badge
from retrieval.documents.reconciliation import ProblemKind
from retrieval.models import Collection, IndexCheck
from retrieval.rights import seen_whole_by


@admin.register(IndexCheck)
class IndexCheckAdmin(ReadOnlyAdmin):
    """What the nightly checks found, the last one first."""

    list_display = ["finished_at", "state", "findings", "duration"]
    list_display_links = None
    ordering = ["-pk"]
    list_per_page = 30

    class Media:
        css = {"all": ["retrieval/admin.css"]}

    def has_view_permission(self, request: HttpRequest, obj: IndexCheck | None = None) -> bool:
        """Examples are words and names of any document."""
        is_whole = not Collection.objects.exclude(pk__in=seen_whole_by(request.user)).exists()
        return super().has_view_permission(request, obj) and is_whole

    @admin.display(description=_("result"))
    def state(self, check: IndexCheck) -> SafeString:
        if all(found["repaired"] for found in check.inconsistencies):
            return badge("ready", _t("repaired") if check.inconsistencies else _t("everything agrees"))
        return badge("failed", _t("needs repair: manage.py reconcile --repair"))

    @admin.display(description=_("found"))
    def findings(self, check: IndexCheck) -> SafeString:
        described = dict(ProblemKind.choices)
        lines = (
            (
                found["count"],
                described.get(found["kind"], found["kind"]),
                found["collection"] or "-",
                ", ".join(found["examples"]),
            )
            for found in check.inconsistencies
        )
        return format_html_join(mark_safe("<br>"), "{} {} ({}): {}", lines) or mark_safe("-")

    @admin.display(description=_("seconds"))
    def duration(self, check: IndexCheck) -> str:
        return str(number_format(check.seconds, 1))
