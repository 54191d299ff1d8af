from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from core.admin_base import redirect_to
from retrieval.admin.curated import CollectionFilter
from retrieval.admin.guarded import GuardedAdmin
from retrieval.documents.drafts.editing import lock_collections_for_change
from retrieval.index.chunk_writer import replace_chunk_questions
from retrieval.models import Chunk, Document
from retrieval.sources.options import LinesField

MOST_QUESTIONS = 5
LONGEST_QUESTION = 200


class QuestionsField(LinesField):
    widget = forms.Textarea(attrs={"rows": MOST_QUESTIONS, "cols": 80})

    def to_python(self, value: Any) -> Any:
        return list(dict.fromkeys(" ".join(line.split()) for line in super().to_python(value)))

    def validate(self, value: Any) -> None:
        if len(value) > MOST_QUESTIONS:
            raise ValidationError(
                _("At most %(limit)d questions, one per line; you gave %(count)d."),
                params={"limit": MOST_QUESTIONS, "count": len(value)},
            )
        for question in value:
            if len(question) > LONGEST_QUESTION:
                raise ValidationError(
                    _("A question must be shorter than %(limit)d characters."), params={"limit": LONGEST_QUESTION}
                )

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(list(initial or []) != self.to_python(data))


class ChunkForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    canonical_questions = QuestionsField(
        label=_("questions it answers"),
        required=False,
        strip=False,
        help_text=_(
            "At most five, one per line, in the words that readers use. Keyword search uses them to "
            "find the passage. Questions that you change here are kept when the document is read "
            "again, as long as the passage stays the same."
        ),
    )

    class Meta:
        model = Chunk
        fields = ["canonical_questions"]


@admin.register(Chunk)
class ChunkAdmin(GuardedAdmin):
    form = ChunkForm
    list_display = ["ordinal", "document", "section", "page", "token_count", "beginning", "questions"]
    list_display_links = ["ordinal", "beginning"]
    list_filter = [("collection", CollectionFilter), "questions_edited"]
    list_select_related = ["document"]
    list_per_page = 50
    show_full_result_count = False
    search_fields = ["content"]
    ordering = ["document_id", "ordinal"]
    made_fields = ["document", "ordinal", "section", "page", "token_count", "text"]
    record_fields = ["questions_edited", "start", "end", "content_hash"]
    readonly_fields = [*made_fields, "questions", *record_fields]

    def get_fields(self, request: HttpRequest, obj: Chunk | None = None) -> list[Any]:
        questions_field = "canonical_questions" if self.has_change_permission(request, obj) else "questions"
        return [*self.made_fields, questions_field, *self.record_fields]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Chunk | None = None) -> bool:
        return False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        try:
            return super().change_view(request, object_id, form_url, extra_context)
        except ObjectDoesNotExist:
            message = _("The document has been read again meanwhile and this passage is gone: nothing was saved.")
            messages.error(request, message)
            return redirect_to(Chunk)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chunk]:
        seen = super().get_queryset(request).filter(document__in=Document.objects.readable_by(request.user))
        return seen.defer("search_vector", "bm25")

    def save_model(self, request: HttpRequest, obj: Chunk, form: Any, change: bool) -> None:
        if "canonical_questions" in form.changed_data:
            with lock_collections_for_change(obj.collection_id):
                replace_chunk_questions(obj, form.cleaned_data["canonical_questions"])

    @admin.display(description=_("section"))
    def section(self, chunk: Chunk) -> str:
        return chunk.section

    @admin.display(description=_("text"))
    def beginning(self, chunk: Chunk) -> str:
        return Truncator(" ".join(chunk.content[:400].split())).words(20)

    @admin.display(description=_("text"))
    def text(self, chunk: Chunk) -> SafeString:
        return format_html('<div class="ragsite-text">{}</div>', chunk.content)

    @admin.display(description=_("questions it answers"))
    def questions(self, chunk: Chunk) -> SafeString:
        return format_html_join(SafeString("<br>"), "{}", ((question,) for question in chunk.canonical_questions))
