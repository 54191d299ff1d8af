"""What the page of one document tells of it, to be read only."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from retrieval.documents.recognition.pages import LOW_CONFIDENCE
from retrieval.models import Document, DocumentText

LONGEST_EXCERPT = 160


class DocumentFacts:
    """Fields of the page, by the names that the admin's ``readonly_fields`` give them."""

    @admin.display(description=_("error"))
    def problem_in_full(self, document: Document) -> SafeString | str:
        return format_html('<div class="ragsite-text">{}</div>', document.error) if document.error else "-"

    @admin.display(description=_("not read"))
    def not_read(self, document: Document) -> str:
        return document.notice or "-"

    @admin.display(description=_("passages"))
    def passages_link(self, document: Document) -> SafeString:
        address = reverse("admin:retrieval_chunk_changelist")
        label = ngettext("%d passage", "%d passages", document.chunk_count) % document.chunk_count
        return format_html('<a href="{}?document__id__exact={}">{}</a>', address, document.pk, label)

    @admin.display(description=_("recognised pages"))
    def recognised_pages(self, document: Document) -> SafeString | str:
        """How many pages were recognised on their pictures, how surely, and which of them are to be looked at."""
        text = DocumentText.objects.filter(pk=document.pk).first()
        if text is None or not text.recognised:
            return "-"
        sure = [confidence for _number, confidence in text.recognised if confidence is not None]
        said = ngettext("%d page was recognised (OCR).", "%d pages were recognised (OCR).", len(sure)) % len(sure)
        if sure:
            said += " " + _t("Mean confidence: %d %%.") % round(sum(sure) / len(sure))
        unsure = [
            (number, "-" if confidence is None else f"{round(confidence)} %")
            for number, confidence in text.recognised
            if confidence is None or confidence < LOW_CONFIDENCE
        ]
        if not unsure:
            return said
        address = reverse("retrieval:document", args=[document.pk])
        links = format_html_join(
            ", ", '<a href="{}?page={}#printed">{} ({})</a>', ((address, n, n, c) for n, c in unsure)
        )
        return format_html("{}<br>{} {}", said, _t("Pages to compare with their pictures:"), links)

    @admin.display(description=_("instructions to a model"))
    def instructions(self, document: Document) -> SafeString | str:
        """The first sentences that instruct a model, each with the way to its place."""
        text = DocumentText.objects.filter(pk=document.pk).first()
        if text is None or not text.instructions:
            return "-"
        address = reverse("retrieval:document", args=[document.pk])
        items = format_html_join(
            "",
            '<li><a href="{}?start={}&amp;end={}#passage">{}</a></li>',
            ((address, start, end, excerpt(text.text[start:end])) for start, end, _rule in text.instructions),
        )
        said = ngettext(
            "%d sentence instructs a language model. No model is given it; search and quotations still show it.",
            "%d sentences instruct a language model. No model is given them; search and quotations still show them.",
            document.instruction_count,
        )
        return format_html("<p>{}</p><ol>{}</ol>", said % document.instruction_count, items)

    @admin.display(description=_("came in"))
    def came_in(self, document: Document) -> SafeString | str:
        return _document_link(document.parent) if document.parent is not None else "-"

    @admin.display(description=_("holds"))
    def members(self, document: Document) -> SafeString | str:
        """The documents that came in it, each with its state."""
        found = document.members.order_by("source")
        items = format_html_join(
            "", "<li>{} – {}</li>", ((_document_link(member), member.get_status_display()) for member in found)
        )
        return format_html("<ul>{}</ul>", items) if items else "-"

    @admin.display(description=_("comes from"))
    def origin_link(self, document: Document) -> SafeString | str:
        if document.origin is None:
            return "-"
        address = reverse("admin:retrieval_source_change", args=[document.origin_id])
        return format_html('<a href="{}">{}</a>', address, document.origin)

    @admin.display(description=_("original"))
    def original(self, document: Document) -> SafeString:
        address = reverse("admin:retrieval_document_original", args=[document.pk])
        return format_html('<a href="{}">{}</a>', address, _t("Download"))


def _document_link(document: Document) -> SafeString:
    address = reverse("admin:retrieval_document_change", args=[document.pk])
    return format_html('<a href="{}">{}</a>', address, document)


def excerpt(text: str) -> str:
    return text if len(text) <= LONGEST_EXCERPT else text[: LONGEST_EXCERPT - 1] + "…"
