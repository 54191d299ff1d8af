from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from ragsite.models import AuditEntry
from ragsite.operations.audit_log import json_lines, may_read_labels, record
from retrieval.admin.base import ReadOnlyAdmin


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ["at", "action", "actor", "object_label", "object_person", "key", "via", "address"]
    list_filter = ["at", "action", "via"]
    list_select_related = ["actor", "object_person"]
    list_per_page = 100
    date_hierarchy = "at"
    search_fields = ["=action", "actor__name", "object_person__name", "object_label", "=object_id", "=key", "=address"]
    search_help_text = _("An action such as document.deleted, a person, an object, a key, or an address.")
    actions = ["export"]

    def get_list_display(self, request: HttpRequest) -> Any:
        is_open = may_read_labels(request.user)
        return [name if is_open or name != "object_label" else "object_id" for name in self.list_display]

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        return [name for name in self.search_fields if name != "object_label" or may_read_labels(request.user)]

    def get_fields(self, request: HttpRequest, obj: AuditEntry | None = None) -> Any:
        hidden = () if may_read_labels(request.user) else ("object_label", "details")
        return [name for name in super().get_fields(request, obj) if name not in hidden]

    @admin.action(description=_("Export the chosen entries as JSON lines"), permissions=["view"])
    def export(self, request: HttpRequest, entries: QuerySet[AuditEntry]) -> HttpResponse:
        lines = "".join(json_lines(entries, with_labels=may_read_labels(request.user)))
        record("audit.exported", entries=lines.count("\n"))
        response = HttpResponse(lines, content_type="application/x-ndjson")
        response["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
        return response
