from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Count, ForeignKey, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.conversations import rights
from chat.models import Answer
from core.admin_base import PageAdmin, admin_link, redirect_to
from evaluation.admin.run_admin import draw_trend_chart
from evaluation.exceptions import EvaluationError, UnreadableTestSet
from evaluation.models import EvaluationQuestion, EvaluationSet, RunKind
from evaluation.models.evaluation_set import build_runnable_condition
from evaluation.runs import queue
from evaluation.runs.results import KIND_OF_MEASURE, MEASURES, NOTHING_TO_MEASURE, find_run_measure
from evaluation.sets import building
from evaluation.sets.beir_files import JUDGEMENTS, LARGEST_BYTES, QUERIES, ImportedQuestion
from retrieval.admin.curated import CollectionFilter, FullyReadableRowsAdmin
from retrieval.admin.playground import PUBLISHED, ProfileChoice
from retrieval.models import Draft

NEWEST_RUNS = 10


class RunForm(forms.Form):
    profile = ProfileChoice(label=_("Search profile"), initial=PUBLISHED)
    kind = forms.ChoiceField(choices=RunKind.choices, widget=forms.HiddenInput)
    draft = forms.ModelChoiceField(
        Draft.objects.none(),
        label=_("Documents"),
        required=False,
        empty_label=_("in service"),
        error_messages={"invalid_choice": _("This draft is not open any more.")},
    )

    def __init__(self, evaluation_set: EvaluationSet, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["draft"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Draft.objects.filter(collection=evaluation_set.collection_id, status=Draft.Status.OPEN)
        self.has_draft = field.queryset.exists()


def check_size(file: UploadedFile[bytes]) -> None:
    if (file.size or 0) > LARGEST_BYTES:
        raise ValidationError(_t("The file is larger than %d MiB.") % (LARGEST_BYTES // 2**20))


class EvaluationSetForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    queries = forms.FileField(
        label=QUERIES,
        required=False,
        validators=[check_size],
        help_text=_(
            'A query may have an expected "answer", lists of words that an answer "must" and "must_not" contain, '
            '"max_chars", or "expects_refusal": true.'
        ),
    )
    qrels = forms.FileField(
        label=JUDGEMENTS,
        required=False,
        validators=[check_size],
        help_text=_(
            "The judged documents are named by their source and must be in the collection. Not needed if the queries "
            "say what is expected."
        ),
    )
    questions: Sequence[ImportedQuestion] = ()

    def clean(self) -> dict[str, object] | None:
        cleaned = super().clean() or {}
        queries, qrels, collection = (cleaned.get(name) for name in ("queries", "qrels", "collection"))
        if queries and collection:
            try:
                self.questions = building.read_files(queries.read(), qrels.read() if qrels else None, collection)
            except UnreadableTestSet as error:
                self.add_error("queries", str(error))
        elif qrels:
            self.add_error("queries", self.fields["queries"].error_messages["required"])
        return cleaned


@admin.register(EvaluationSet)
class EvaluationSetAdmin(PageAdmin, FullyReadableRowsAdmin):
    list_display = ["name", "collection", "questions", "drafts", "created_at"]
    list_filter = [("collection", CollectionFilter)]
    list_select_related = ["collection"]
    search_fields = ["name", "slug", "description"]
    ordering = ["name", "id"]
    prepopulated_fields = {"slug": ["name"]}
    form = EvaluationSetForm
    fields = ["name", "slug", "collection", "description"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EvaluationSet]:
        sets: QuerySet[EvaluationSet] = super().get_queryset(request)
        return sets.annotate(
            question_count=Count("questions", distinct=True),
            asked_count=Count("questions", filter=build_runnable_condition("questions"), distinct=True),
        )

    def get_fields(self, request: HttpRequest, obj: EvaluationSet | None = None) -> list[Any]:
        return [*self.fields, *([] if obj else ["queries", "qrels"])]

    def get_readonly_fields(self, request: HttpRequest, obj: EvaluationSet | None = None) -> list[str]:
        # The expected passages belong to documents of this collection, so it cannot change.
        return ["collection"] if obj else []

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **options: Any
    ) -> forms.ModelChoiceField[Any] | None:
        if db_field.name == "collection":
            options["queryset"] = self.list_permitted_collections(request).in_service()
        return super().formfield_for_foreignkey(db_field, request, **options)

    def save_model(self, request: HttpRequest, obj: EvaluationSet, form: EvaluationSetForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        building.add_questions(obj, form.questions)

    @admin.display(description=_("questions"), ordering="question_count")
    def questions(self, evaluation_set: EvaluationSet) -> SafeString:
        count = getattr(evaluation_set, "question_count", 0)
        return admin_link(EvaluationQuestion, count, evaluation_set__id__exact=evaluation_set.pk)

    @admin.display(description=_("drafts"))
    def drafts(self, evaluation_set: EvaluationSet) -> int:
        return int(getattr(evaluation_set, "question_count", 0)) - int(getattr(evaluation_set, "asked_count", 0))

    def page_context(self, request: HttpRequest, obj: EvaluationSet) -> dict[str, object]:
        measurable = {kind: obj.questions.measurable(kind).count() for kind in RunKind}
        metric = request.GET.get("metric", "")
        shown = KIND_OF_MEASURE.get(metric, next((kind for kind in RunKind if measurable[kind]), RunKind.SEARCH))
        measure = find_run_measure(shown, metric)
        runs = list(obj.runs.all()[:NEWEST_RUNS])
        return {
            "counts": (self.questions(obj), self.drafts(obj)),
            "run_form": RunForm(obj) if request.user.has_perm("evaluation.add_evaluationrun") else None,
            "measurable": measurable,
            "nothing_to_measure": NOTHING_TO_MEASURE,
            "runs": runs,
            "is_live": any(not run.is_finished for run in runs),
            "measure": measure,
            "measures": [(kind.label, MEASURES[kind]) for kind in RunKind],
            "chart": draw_trend_chart(obj, measure),
        }

    def get_urls(self) -> list[URLPattern]:
        return [
            self.build_button_path(
                "make-case/", self.add_complaint_view, "make_case", "evaluation.add_evaluationquestion"
            ),
            self.build_button_path(
                "<int:set_id>/run/", self.run_view, "evaluationset_run", "evaluation.add_evaluationrun"
            ),
            *super().get_urls(),
        ]

    def run_view(self, request: HttpRequest, set_id: int) -> HttpResponse:
        evaluation_set = get_object_or_404(self.get_queryset(request), pk=set_id)
        form = RunForm(evaluation_set, request.POST)
        with self.show_errors_as_messages(request, EvaluationError):
            if not form.is_valid():
                raise EvaluationError(" ".join(str(problem) for found in form.errors.values() for problem in found))
            chosen = form.cleaned_data
            if not evaluation_set.questions.measurable(chosen["kind"]).exists():
                raise EvaluationError(f"{evaluation_set}: {NOTHING_TO_MEASURE[chosen['kind']]}")
            run = queue.request_evaluation_run(
                evaluation_set, chosen["profile"], kind=chosen["kind"], draft=chosen["draft"], by=request.user
            )
            self.tell_done(request, _t("Run #%d is requested.") % run.pk)
            return redirect_to(run)
        return redirect_to(evaluation_set)

    def add_complaint_view(self, request: HttpRequest) -> HttpResponse:
        """Copy an answer's question into the evaluation set of complaints, as a draft, which no run uses."""
        try:
            answer_id = uuid.UUID(request.POST.get("answer", ""))
        except ValueError as error:
            raise Http404 from error
        answers = rights.filter_readable_answers(request.user, Answer.objects.select_related("collection"))
        answer = get_object_or_404(answers, pk=answer_id)
        collection = building.find_collection_of_answer(answer)
        if collection is None:
            self.message_user(request, _t("There is no collection to ask."), messages.ERROR)
            return redirect_to(answer)
        question, is_new = building.get_or_create_question(answer, building.get_complaint_set(collection))
        message = (
            _t("A draft: choose below the passages that it should have found, or write a right answer.")
            if is_new
            else _t("This answer is a test case already.")
        )
        self.message_user(request, message, messages.SUCCESS if is_new else messages.INFO)
        if is_new and not building.has_only_sources_of(answer, collection):
            told = _t(
                "This question was also answered from other collections. Everyone who may read this set can read it."
            )
            self.message_user(request, told, messages.WARNING)
        return redirect_to(question)
