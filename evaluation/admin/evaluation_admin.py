"""What the admin pages of evaluation share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t

from retrieval.admin.base import badge

if TYPE_CHECKING:
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


def job_badge(job: EvaluationRun | Judgement, label: object = None) -> SafeString:
    """The job's status; an attempt that failed shows before the next one."""
    if job.status == job.Status.QUEUED and job.error:
        return badge("failed", _t("failed, will be tried again"))
    return badge(_COLOURS[job.status], label or job.get_status_display())


def link(address: str, label: object) -> SafeString:
    return format_html('<a href="{}">{}</a>', address, label)
