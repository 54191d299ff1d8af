from __future__ import annotations

import asyncio
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.answering import writers
from chat.models import CollectionInstructions
from chat.pages.rendering import render_answer
from chat.types import CompletedEvent
from core import deadline
from core.admin_base import PageAdmin, redirect_to, render_badge
from core.user_types import AnyUser
from evaluation import gates
from evaluation.dashboard.gaps import find_unanswered_questions
from evaluation.dashboard.scope import build_scope
from evaluation.models import EvaluationQuestion, RunKind
from evaluation.runs.measurement import MeasuredReply, measure_reply
from retrieval.admin.curated import CollectionFilter, CuratedRowsAdmin
from retrieval.models import Collection
from retrieval.models.collection import CollectionQuerySet
from retrieval.rights.search_filters import build_filters
from retrieval.rights.staff import list_source_collections
from retrieval.types import SearchFilters

QUESTIONS = 3
_Shown = dict[str, str]


class PreviewForm(forms.Form):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for number in range(1, QUESTIONS + 1):
            self.fields[f"question_{number}"] = forms.CharField(
                label=_("Question %(number)d") % {"number": number},
                required=number == 1,
                max_length=settings.QUESTION_MAX_CHARACTERS,
                widget=forms.TextInput(attrs={"class": "vLargeTextField", "autocomplete": "off"}),
            )


@admin.register(CollectionInstructions)
class CollectionInstructionsAdmin(PageAdmin, CuratedRowsAdmin):
    list_display = ["__str__", "collection", "state_badge", "created_by", "created_at"]
    list_filter = [("collection", CollectionFilter)]
    list_select_related = ["collection", "created_by"]
    fields = ["collection", "text"]

    @admin.display(description=_("status"))
    def state_badge(self, version: CollectionInstructions) -> SafeString | str:
        if version.is_active:
            return render_badge("ready", _("in use"))
        return render_badge("processing", _("being measured")) if version.requested_at else "-"

    def list_permitted_collections(self, request: HttpRequest) -> CollectionQuerySet:
        """Return the collections that the user curates and in which the user may read all documents.

        The page shows a language model's answers, which can contain words of any document of the collection.
        """
        return list_source_collections(request.user)

    def has_change_permission(self, request: HttpRequest, obj: CollectionInstructions | None = None) -> bool:
        return obj is None and super().has_change_permission(request)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        named = request.GET.get("from", "")
        version = self.get_queryset(request).filter(pk=int(named)).first() if named.isdecimal() else None
        if version is None:
            return super().get_changeform_initial_data(request)
        return {"collection": version.collection_id, "text": version.text}

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs["queryset"] = self.list_permitted_collections(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: CollectionInstructions, form: Any, change: bool) -> None:
        obj.created_by_id = request.user.pk
        super().save_model(request, obj, form, change)
        messages.info(request, _t("%s takes effect when you activate it.") % obj)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        return redirect_to(obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {**_build_language_model_context(), **(extra_context or {})})

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().add_view(request, form_url, {**_build_language_model_context(), **(extra_context or {})})

    def page_context(self, request: HttpRequest, obj: CollectionInstructions) -> dict[str, object]:
        return {
            "version": obj,
            "state": self.state_badge(obj),
            **_build_language_model_context(),
            "sets": [policy.evaluation_set for policy in gates.list_instruction_gates(obj.collection_id)],
            "may_act": request.user.has_perm("chat.change_collectioninstructions"),
        }

    def get_urls(self) -> list[URLPattern]:
        change = "chat.change_collectioninstructions"
        preview = self.admin_site.admin_view(self.preview_view)
        return [
            self.build_button_path("<int:pk>/activate/", self.activate_view, "collectioninstructions_activate", change),
            self.build_button_path("<int:pk>/withdraw/", self.withdraw_view, "collectioninstructions_withdraw", change),
            path("<int:pk>/preview/", preview, name="chat_collectioninstructions_preview"),
            *super().get_urls(),
        ]

    def activate_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        version = self._get_version(request, pk)
        if gates.request_activation(version, request.user):
            told = _t("%s is being measured. It takes effect unless its answers are worse.") % version
            self.tell_done(request, told)
        else:
            messages.warning(request, _t("%s is in use. It was not measured.") % version)
        return redirect_to(version)

    def withdraw_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Deactivate a version of the instructions, or stop its evaluation."""
        version = self._get_version(request, pk)
        if version.is_active:
            told = _t("%s is no longer in use: models follow no instructions. The change was not measured.")
            messages.warning(request, told % version)
        version.is_active, version.requested_at, version.outcome = False, None, ""
        version.save(update_fields=["is_active", "requested_at", "outcome"])
        return redirect_to(version)

    def preview_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        if not request.user.has_perm("chat.change_collectioninstructions"):
            raise PermissionDenied
        version = self._get_version(request, pk)
        collection = version.collection
        active = collection.instructions.filter(is_active=True).first()
        suggested = {f"question_{at}": text for at, text in enumerate(_suggest_questions(request.user, collection), 1)}
        form = PreviewForm(request.POST or None, initial=suggested)
        rows: list[tuple[str, list[_Shown | None]]] = []
        if writers.list_language_models() and form.is_valid():
            questions = list(filter(None, form.cleaned_data.values()))
            texts = (active.text if active else "", version.text)
            with deadline.limit_time(settings.QUESTION_SECONDS):
                replies = async_to_sync(_ask_with_both_instructions)(
                    questions, build_filters(request.user, collection.slug), texts
                )
            rows = [
                (question, list(map(_render_reply, each))) for question, each in zip(questions, replies, strict=True)
            ]
        context = {**self.page_context(request, version), "active": active, "form": form, "rows": rows}
        return self.render_page(request, "collectioninstructions/preview", _t("Preview of %s") % version, context)

    def _get_version(self, request: HttpRequest, pk: int) -> CollectionInstructions:
        found: CollectionInstructions = get_object_or_404(
            self.get_queryset(request).select_related("collection"), pk=pk
        )
        return found


def _build_language_model_context() -> dict[str, object]:
    return {"has_model": bool(writers.list_language_models())}


def _suggest_questions(user: AnyUser, collection: Collection) -> list[str]:
    measured = EvaluationQuestion.objects.measurable(RunKind.ANSWERS).filter(evaluation_set__collection=collection)
    found = list(measured.order_by("pk").values_list("text", flat=True)[:QUESTIONS])
    if not found:
        found = [
            gap.question for gap in find_unanswered_questions(build_scope(user, collection=collection))[0][:QUESTIONS]
        ]
    return found


def _render_reply(reply: MeasuredReply) -> _Shown | None:
    end = reply.end
    return {"html": render_answer(end.text, ()), "notice": end.notice} if isinstance(end, CompletedEvent) else None


async def _ask_with_both_instructions(
    questions: list[str], filters: SearchFilters, texts: tuple[str, str]
) -> list[list[MeasuredReply]]:
    async def ask_with_each_instructions(question: str) -> list[MeasuredReply]:
        return [await measure_reply(question, filters, instructions=text) for text in texts]

    return list(await asyncio.gather(*map(ask_with_each_instructions, questions)))
