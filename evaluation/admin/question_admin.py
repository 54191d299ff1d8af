"""Questions of evaluation sets in the admin, with the passages that a search should find."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.forms import SimpleArrayField
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from core.admin_base import (
    AlwaysShownRelatedFilter,
    FixedChoicesFilter,
    PageAdmin,
    admin_link,
    redirect_to,
    render_badge,
)
from core.exceptions import RagsiteError
from evaluation.exceptions import EvaluationError
from evaluation.expectations import normalize_lines
from evaluation.models import EvaluationQuestion, ExpectedPassage
from evaluation.models.evaluation_set import build_runnable_condition
from evaluation.sets import building
from evaluation.sets.building import REFUSAL_HAS_NO_PASSAGE
from evaluation.sets.resolution import find_expected_chunks
from retrieval.admin.curated import FullyReadableRowsAdmin
from retrieval.models import Chunk
from retrieval.search.pipeline import search
from retrieval.search.search_places import wait_for_search_slot
from retrieval.types import SearchFilters

PREVIEW_WORDS = 60
MOST_OFFERED = 10
LARGEST_QUERY_CHARACTERS = 500


class IsDraftFilter(FixedChoicesFilter):
    title = _("draft")
    parameter_name = "draft"
    conditions = {"yes": (_("Yes"), ~build_runnable_condition()), "no": (_("No"), build_runnable_condition())}


class ExpectedPassageFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # generic in the stubs only
    def clean(self) -> None:
        super().clean()
        to_find = [
            form
            for form in self.forms
            if (filled := getattr(form, "cleaned_data", {})) and not filled.get("DELETE") and filled.get("grade", 0) > 0
        ]
        if self.instance.expects_refusal and to_find:
            raise forms.ValidationError(str(REFUSAL_HAS_NO_PASSAGE))


class ArrayLinesField(SimpleArrayField):
    def __init__(self, base_field: forms.Field, **options: Any) -> None:
        super().__init__(base_field, delimiter="\n", **options)

    def to_python(self, value: Any) -> Any:
        return normalize_lines(super().to_python(value))


class ExpectedPassageForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = ExpectedPassage
        fields = ("source", "quote", "grade")
        # Screen readers do not read the heading of a table's column.
        widgets = {
            "source": forms.TextInput(attrs={"size": 22, "aria-label": _("document")}),
            "quote": forms.Textarea(attrs={"rows": 3, "cols": 38, "aria-label": _("words of the passage")}),
            "grade": forms.NumberInput(attrs={"min": 0, "aria-label": _("grade")}),
        }

    def save(self, commit: bool = True) -> ExpectedPassage:
        """Save the expected passage. If its quote or document changed, clear the hash of the old passage."""
        if {"quote", "source"} & set(self.changed_data):
            self.instance.content_hash = ""
        saved: ExpectedPassage = super().save(commit)
        return saved


class ExpectedPassageInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    model = ExpectedPassage
    form = ExpectedPassageForm
    formset = ExpectedPassageFormSet
    extra = 0
    fields = ["source", "quote", "grade", "is_found_now"]
    readonly_fields = ["is_found_now"]

    @admin.display(description=_("found in the documents"))
    def is_found_now(self, expected: ExpectedPassage) -> SafeString | str:
        if expected._state.adding:
            return "–"
        found = find_expected_chunks(expected.question.evaluation_set.collection_id, [expected])[expected.pk]
        if found.is_resolved:
            return render_badge("ready", _t("yes"))
        return render_badge("failed", _t("no") if found.document_id is not None else _t("no such document"))


@admin.register(EvaluationQuestion)
class EvaluationQuestionAdmin(PageAdmin, FullyReadableRowsAdmin):
    collection_path = "evaluation_set__collection"
    list_display = ["excerpt", "evaluation_set", "origin", "expectation_summary", "created_at"]
    list_filter = [("evaluation_set", AlwaysShownRelatedFilter), "origin", IsDraftFilter, "expects_refusal"]
    list_select_related = ["evaluation_set"]
    list_per_page = 50
    search_fields = ["text", "expected_answer", "expected_passages__source"]
    autocomplete_fields = ["evaluation_set"]
    fields = [
        "evaluation_set", "text", "expected_answer", "must", "must_not", "longest", "expects_refusal", "origin_shown"
    ]  # fmt: skip
    readonly_fields = ["origin_shown"]
    inlines = [ExpectedPassageInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EvaluationQuestion]:
        questions: QuerySet[EvaluationQuestion] = super().get_queryset(request)
        return questions.annotate(
            expected_count=Count("expected_passages", filter=Q(expected_passages__grade__gt=0), distinct=True)
        )

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> forms.Field | None:
        if isinstance(db_field, ArrayField):
            kwargs |= {"form_class": ArrayLinesField, "widget": forms.Textarea(attrs={"rows": 3, "cols": 60})}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    @admin.display(description=_("question"), ordering="text")
    def excerpt(self, question: EvaluationQuestion) -> str:
        return Truncator(question.text).chars(120)

    @admin.display(description=_("expected"), ordering="expected_count")
    def expectation_summary(self, question: EvaluationQuestion) -> SafeString | str:
        if question.expects_refusal:
            return _t("a refusal")
        number = getattr(question, "expected_count", 0)
        expected = [ngettext("%d passage", "%d passages", number) % number] if number else []
        if question.expected_answer:
            expected.append(_t("an answer"))
        if question.must:
            expected.append(_t("words of an answer"))
        return ", ".join(expected) or render_badge("pending", _t("draft"))

    @admin.display(description=_("origin"))
    def origin_shown(self, question: EvaluationQuestion) -> SafeString | str:
        origin = question.get_origin_display()
        return origin if question.answer is None else admin_link(question.answer, origin)

    def response_add(
        self, request: HttpRequest, obj: EvaluationQuestion, post_url_continue: str | None = None
    ) -> HttpResponse:
        """After "Save and add another", show an empty form for the same evaluation set."""
        response = super().response_add(request, obj, post_url_continue)
        if "_addanother" in request.POST and isinstance(response, HttpResponseRedirect):
            return HttpResponseRedirect(f"{request.path}?evaluation_set={obj.evaluation_set_id}")
        return response

    def page_context(self, request: HttpRequest, obj: EvaluationQuestion) -> dict[str, object]:
        if obj.expects_refusal or not self.has_change_permission(request, obj):
            return {}
        query = " ".join(request.GET.get("passages", "").replace("\x00", " ").split())[:LARGEST_QUERY_CHARACTERS]
        found: list[int] = []
        problem = ""
        if query:
            # Only users who may read the whole collection see its sets.
            filters = SearchFilters(collections=(obj.evaluation_set.collection_id,), readers=())
            try:
                with wait_for_search_slot():
                    result = search(query, filters)
                found = [hit.passage.chunk_id for hit in result.hits][:MOST_OFFERED]
            except RagsiteError as error:
                problem = str(error)
        of_answer = [] if obj.answer is None else [source["chunk_id"] for source in obj.answer.sources]
        return {
            "may_pick": True,
            "searched": query,
            "search_problem": problem,
            "found": _list_offered_passages(obj, found),
            "of_answer": _list_offered_passages(obj, of_answer[:MOST_OFFERED]),
        }

    def get_urls(self) -> list[URLPattern]:
        route, permission = "<int:question_id>/expect/", "evaluation.change_evaluationquestion"
        expected = self.build_button_path(
            route, self.add_expected_passage_view, "evaluationquestion_expect", permission
        )
        return [expected, *super().get_urls()]

    def add_expected_passage_view(self, request: HttpRequest, question_id: int) -> HttpResponse:
        question = get_object_or_404(self.get_queryset(request).select_related("evaluation_set"), pk=question_id)
        chunk_id = request.POST.get("chunk", "")
        chunks = Chunk.objects.filter(collection=question.evaluation_set.collection_id)
        chunk = chunks.filter(pk=chunk_id).first() if chunk_id.isdecimal() and len(chunk_id) < 19 else None
        with self.show_errors_as_messages(request, EvaluationError):
            if chunk is None:
                raise EvaluationError(_t("This passage is gone: search for it again."))
            building.add_expected_passage(question, chunk)
            message = _t("Expected: a passage of %s.") % chunk.document
            self.log_change(request, question, message)
            self.tell_done(request, message)
        return redirect_to(question)


def _list_offered_passages(question: EvaluationQuestion, chunk_ids: list[int]) -> list[tuple[Chunk, str, bool]]:
    chunks = Chunk.objects.filter(collection=question.evaluation_set.collection_id)
    by_id = chunks.prefetch_related("document").in_bulk(chunk_ids)
    expected = set(question.expected_passages.filter(grade__gt=0).values_list("source", "content_hash"))
    return [
        (
            chunk,
            Truncator(" ".join(chunk.content.split())).words(PREVIEW_WORDS),
            (chunk.document.source, chunk.content_hash) in expected,
        )
        for pk in chunk_ids
        if (chunk := by_id.get(pk)) is not None
    ]
