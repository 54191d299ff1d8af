from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, TypedDict

from django import forms
from django.contrib import admin
from django.db.models import ForeignKey
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.admin_base import PageAdmin, redirect_to, render_badge
from evaluation import experiments
from evaluation.arms import LEAST_PER_ARM
from evaluation.experiments import (
    ArmOutcome,
    ExperimentRefused,
    ExperimentReport,
    ExperimentVerdict,
    build_report,
    describe_verdict,
    format_percentage_points,
)
from evaluation.figures import format_percent, format_whole_number
from evaluation.models import Experiment
from retrieval.gates import find_publication_objections
from retrieval.models import SearchProfileVersion
from retrieval.search.profiles import profiles

STEER, PUBLISH = "evaluation.change_experiment", "retrieval.change_searchprofile"


@admin.register(Experiment)
class ExperimentAdmin(PageAdmin):
    list_display = [
        "name",
        "state_badge",
        "control_name",
        "treatment",
        "metric",
        "started_at",
        "ended_at",
        "conclusion",
    ]
    list_filter = ["state", "metric"]
    list_select_related = ["control__profile", "treatment__profile"]
    search_fields = ["name", "hypothesis"]
    fields = ["name", "hypothesis", "control", "treatment", "traffic_share", "metric"]

    def has_change_permission(self, request: HttpRequest, obj: Experiment | None = None) -> bool:
        return _is_draft(obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Experiment | None = None) -> bool:
        return _is_draft(obj) and super().has_delete_permission(request, obj)

    @admin.display(description=_("state"), ordering="state")
    def state_badge(self, experiment: Experiment) -> SafeString:
        return render_badge(experiment.state, experiment.get_state_display())

    @admin.display(description=_("control"), ordering="control")
    def control_name(self, experiment: Experiment) -> str:
        return str(experiment.control or _t("the built-in profile"))

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.ModelChoiceField[Any] | None:
        if db_field.name in ("control", "treatment"):
            kwargs["queryset"] = SearchProfileVersion.objects.select_related("profile").order_by("-created_at")
        if db_field.name == "control":
            kwargs["empty_label"] = _t("the built-in profile")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        published = profiles.find_published_version()
        return {"control": published.pk if published else None, **super().get_changeform_initial_data(request)}

    def response_add(self, request: HttpRequest, obj: Experiment, post_url_continue: str | None = None) -> HttpResponse:
        self.tell_done(request, _t("Saved: %s. It has not been started.") % obj)
        return redirect_to(obj)

    def page_context(self, request: HttpRequest, obj: Experiment) -> dict[str, object]:
        is_draft = _is_draft(obj)
        return {
            "started": None if is_draft else build_started_context(obj),
            "is_draft": is_draft,
            "draft_objections": find_publication_objections(obj.treatment) if is_draft else (),
            "may_steer": request.user.has_perm(STEER),
            "may_publish": request.user.has_perm(PUBLISH),
        }

    def get_urls(self) -> list[URLPattern]:
        return [
            # A started experiment shows visitors a search profile that may be unpublished, so starting needs the right
            # to publish.
            self.build_button_path("<int:pk>/start/", self.start_view, "experiment_start", STEER, PUBLISH),
            self.build_button_path("<int:pk>/end/", self.end_view, "experiment_end", STEER),
            *super().get_urls(),
        ]

    def start_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return self._run_experiment_action(request, pk, experiments.start_experiment)

    def end_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return self._run_experiment_action(request, pk, experiments.end_experiment)

    def _run_experiment_action(
        self, request: HttpRequest, pk: int, act: Callable[[Experiment, Any], Experiment]
    ) -> HttpResponse:
        experiment = get_object_or_404(Experiment, pk=pk)
        with self.show_errors_as_messages(request, ExperimentRefused):
            experiment = act(experiment, request.user)
            message = _t("Ended. %s") % experiment.conclusion if experiment.ended_at else _t("Started.")
            self.log_change(request, experiment, message)
            self.tell_done(request, message)
        return redirect_to(experiment)


def _is_draft(experiment: Experiment | None) -> bool:
    return experiment is None or experiment.state == Experiment.State.DRAFT


class StartedExperimentContext(TypedDict):
    arms: tuple[ArmOutcome, ArmOutcome]
    sentence: str
    rows: list[dict[str, str]]
    is_decided: bool
    version: SearchProfileVersion | None
    least: int


def build_started_context(experiment: Experiment) -> StartedExperimentContext:
    summary = build_report(experiment)
    is_decided = summary.verdict in (ExperimentVerdict.CONTROL, ExperimentVerdict.TREATMENT)
    return {
        "arms": (summary.control, summary.treatment),
        "sentence": describe_verdict(summary),
        "rows": [_make_row(summary, metric) for metric in summary.effects],
        "is_decided": is_decided,
        "version": experiment.treatment if summary.verdict is ExperimentVerdict.TREATMENT else experiment.control,
        "least": LEAST_PER_ARM,
    }


def _make_row(summary: ExperimentReport, metric: str) -> dict[str, str]:
    found = summary.effects[metric]
    interval = _t("too few visitors")
    if found is not None:
        bounds = {"low": format_percentage_points(found.low), "high": format_percentage_points(found.high)}
        interval = _t("%(low)s to %(high)s") % bounds if found.is_known else _t("all the same so far")
    return {
        "label": str(Experiment.Metric(metric).label),
        "difference": format_percentage_points(found.difference) if found is not None else "–",
        "interval": interval,
        **{outcome.arm: _format_mean(outcome.values[metric]) for outcome in (summary.control, summary.treatment)},
    }


def _format_mean(values: Sequence[float]) -> str:
    return f"{format_percent(fmean(values) if values else None)} ({format_whole_number(len(values))})"
