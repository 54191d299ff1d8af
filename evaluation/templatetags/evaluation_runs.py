from __future__ import annotations

from django import template

from evaluation.admin.run_admin import (
    describe_ranks,
    documents_badge,
    interval_text,
    metric_label,
    result_text,
    run_badge,
    verdict_badge,
)
from evaluation.figures import format_percent
from evaluation.statistics import Interval

register = template.Library()
register.filter(documents_badge)
register.filter(run_badge)
register.filter("result", result_text)
register.filter("interval", interval_text)
register.filter("percent", format_percent)
register.filter("metric_label", metric_label)
register.filter("ranks", describe_ranks)
register.filter("verdict", verdict_badge)


@register.filter("difference")
def format_difference(found: Interval | None) -> str:
    return interval_text(found, signed=True)
