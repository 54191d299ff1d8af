from __future__ import annotations

from django import template

from evaluation.admin.run_presentation import interval_text
from evaluation.statistics.intervals import Interval

register = template.Library()


@register.filter
def interval(found: Interval | None) -> str:
    return interval_text(found)


@register.filter
def difference(found: Interval | None) -> str:
    return interval_text(found, signed=True)
