from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from retrieval.admin.base import ReadOnlyAdmin
from retrieval.models import Chunk


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    """Passages as ingestion made them; usually reached from their document."""

    list_display = ["ordinal", "document", "section", "page", "token_count", "beginning", "questions"]
    list_display_links = ["ordinal", "beginning"]
    list_filter = ["collection"]
    list_select_related = ["document"]
    list_per_page = 50
    show_full_result_count = False
    search_fields = ["content"]
    ordering = ["document_id", "ordinal"]
    fields = [
        "document",
        "ordinal",
        "section",
        "page",
        "token_count",
        "text",
        "questions",
        "start",
        "end",
        "content_hash",
    ]

    class Media:
        css = {"all": ["retrieval/admin.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chunk]:
        # What the search reads is large and of no use to people.
        return super().get_queryset(request).defer("search_vector", "bm25")

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
