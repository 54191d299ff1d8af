from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from core.admin_base import FixedChoicesFilter, NumberRangeFilter


class DurationFilter(NumberRangeFilter):
    stretches = (
        (_("slower than 100 ms"), 100, None),
        (_("slower than 1 s"), 1_000, None),
        (_("slower than 5 s"), 5_000, None),
        (_("slower than 20 s"), 20_000, None),
    )


class ConfidenceFilter(NumberRangeFilter):
    stretches = (
        (_("below 0.1: no model is asked"), None, 0.1),
        (_("0.1 to 0.6: the closest passages"), 0.1, 0.6),
        (_("0.6 to 0.8: answered"), 0.6, 0.8),
        (_("from 0.8: answered, sure"), 0.8, None),
    )


class DegradedSearchFilter(FixedChoicesFilter):
    title = _("parts of the search that did not answer")
    parameter_name = "degraded"
    conditions = {"yes": (_("some"), ~Q(degraded=[])), "no": (_("none"), Q(degraded=[]))}


class GapFilter(admin.SimpleListFilter):
    title = _("gap")
    parameter_name = "gap"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("gaps")), ("no", _("others"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Answer]) -> QuerySet[Answer]:
        match self.value():
            case "yes":
                return queryset.filter(Answer.build_knowledge_gap_condition())
            case "no":
                return queryset.filter(
                    ~Q(pk__in=Answer.objects.filter(Answer.build_knowledge_gap_condition()).order_by().values("pk"))
                )
        return queryset
