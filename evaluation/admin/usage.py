from __future__ import annotations

from django.contrib import admin

from evaluation.models import JudgeUsage
from retrieval.admin.base import ReadOnlyAdmin


@admin.register(JudgeUsage)
class JudgeUsageAdmin(ReadOnlyAdmin):
    """What the judge consumed, day by day."""

    list_display = ["day", "prompt_tokens", "completion_tokens", "total_tokens"]
    list_display_links = None
    date_hierarchy = "day"
    list_per_page = 31
