from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _t

from core.admin_base import PageAdmin, ReadOnlyAdmin, SuperuserAdmin, redirect_to, render_job_badge
from evaluation.embedder_trials.known_embedders import (
    BY_KEY,
    KNOWN,
    KnownEmbedder,
    compute_stored_bytes,
    get_known_options,
)
from evaluation.embedder_trials.requests import (
    cancel_trial,
    delete_unused_vectors,
    request_embedder_switch,
    request_embedder_trial,
)
from evaluation.exceptions import EvaluationError
from evaluation.models import EmbedderTrial, EvaluationSet
from retrieval.models import Chunk, Embedder


@admin.register(EmbedderTrial)
class SearchQualityAdmin(PageAdmin, ReadOnlyAdmin, SuperuserAdmin):
    """The page to try embedders, only for superusers, because its form accepts a folder of the server."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return SuperuserAdmin.has_view_permission(self, request, obj)

    has_module_permission = has_view_permission

    def get_urls(self) -> list[URLPattern]:
        page = path("", self.admin_site.admin_view(self.changelist_view), name="evaluation_embeddertrial_changelist")
        permission = "evaluation.change_embeddertrial"
        buttons = [
            self.build_button_path(f"{name}/", view, f"embeddertrial_{name}", permission)
            for name, view in (
                ("try", self.try_view),
                ("switch", self.switch_embedder_view),
                ("cancel", self.cancel_view),
                ("discard", self.discard_view),
            )
        ]
        return [page, *buttons]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            return redirect("admin:index")
        passages = Chunk.objects.count()
        rows = list(Embedder.objects.all())
        active = next((row for row in rows if row.is_active), None)
        trial = EmbedderTrial.objects.first()
        context = {
            "passages": passages,
            "active": active,
            "offers": [_describe_known_embedder(known, passages, active) for known in KNOWN],
            "named_by_settings": bool(settings.EMBEDDER),
            "trial": trial,
            "badge": render_job_badge(trial) if trial is not None else "",
            "is_live": trial is not None and not trial.is_finished,
            "may_switch": trial is not None and trial.status == EmbedderTrial.Status.DONE,
            "unused": [row for row in rows if not row.is_active],
            "has_questions": EvaluationSet.objects.filter(questions__expected_passages__isnull=False).exists(),
            **(extra_context or {}),
        }
        return self.render_page(request, "search_quality", _t("Search quality"), context)

    def try_view(self, request: HttpRequest) -> HttpResponse:
        known = BY_KEY.get(request.POST.get("key", ""))
        name = " ".join(request.POST.get("name", "").split())
        if known is None and not name:
            self.message_user(request, _t("Name an embedder: a folder, or a name on the hub."), messages.ERROR)
            return redirect_to(EmbedderTrial)
        label, options = (known.label, known.options) if known is not None else (name, get_known_options(name))
        return self._run_and_report(
            request, lambda: request_embedder_trial(label, options), _t("%s is being tried.") % label
        )

    def switch_embedder_view(self, request: HttpRequest) -> HttpResponse:
        trial = EmbedderTrial.objects.first()
        if trial is None:
            return redirect_to(EmbedderTrial)
        return self._run_and_report(
            request, lambda: request_embedder_switch(trial), _t("The site is switching to %s.") % trial
        )

    def cancel_view(self, request: HttpRequest) -> HttpResponse:
        for trial in EmbedderTrial.unfinished():
            cancel_trial(trial)
        return redirect_to(EmbedderTrial)

    def discard_view(self, request: HttpRequest) -> HttpResponse:
        return self._run_and_report(request, delete_unused_vectors, _t("The unused vectors were deleted."))

    def _run_and_report(self, request: HttpRequest, do: Any, message: str) -> HttpResponse:
        with self.show_errors_as_messages(request, EvaluationError):
            do()
            self.tell_done(request, message)
        return redirect_to(EmbedderTrial)


def _describe_known_embedder(known: KnownEmbedder, passages: int, active: Embedder | None) -> dict[str, object]:
    speed = known.passages_a_second
    return {
        "known": known,
        "is_active": active is not None and _is_same_embedder(active, known),
        "minutes": None if speed is None else max(1, round(passages / speed / 60)),
        "stored_bytes": compute_stored_bytes(passages, known.dimension),
    }


def _is_same_embedder(row: Embedder, known: KnownEmbedder) -> bool:
    built_in = known.options.get("built_in")
    return row.options == known.options or (built_in is not None and row.name.startswith(f"{built_in}/"))
