"""Show a document's text with the borders of its passages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from core.user_types import AnyUser
from core.users import is_staff_with, may_debug
from retrieval.models import Chunk, Collection, Document
from retrieval.viewer.plain_text import Heading, HtmlWriter

PARAMETER = "passages"


@dataclass(frozen=True, slots=True)
class ShownBorder:
    """The position of a passage in the shown text.

    ``overlap`` is the number of characters shared with the passage before.
    """

    chunk: Chunk
    overlap: int = 0
    admin_href: str = ""

    @property
    def number(self) -> int:
        return self.chunk.ordinal + 1

    @property
    def character_count(self) -> int:
        return self.chunk.end - self.chunk.start


@dataclass(frozen=True, slots=True)
class PassageBorders:
    shown: Sequence[ShownBorder]

    def write_text(
        self, writer: HtmlWriter, pages: Iterable[Sequence[int]] = (), sections: Iterable[Heading] = ()
    ) -> None:
        """Write the whole text. Text that two passages share is in a <span> element with the class ``overlap``."""
        page_at = {start: number for number, start, _end in pages}
        anchors = {section.start: section.anchor for section in sections}
        starts: dict[int, list[ShownBorder]] = {}
        ends: dict[int, list[ShownBorder]] = {}
        for border in self.shown:
            starts.setdefault(border.chunk.start, []).append(border)
            ends.setdefault(border.chunk.end, []).append(border)
        within: list[int] = []
        length = len(writer.text)
        places = {min(place, length) for place in (0, length, *page_at, *anchors, *starts, *ends)}
        for start, end in pairwise([*sorted(places), length]):
            for border in ends.get(start, ()):
                within.remove(border.number)
                label = escape(_("End of passage {}").format(border.number))
                writer.write_html(f'<p class="border-end">{label}</p>')
            if start in page_at:
                label = escape(_("Page {}").format(page_at[start]))
                writer.write_html(f'<div class="page-break" id="page-{page_at[start]}">{label}</div>')
            if not within and start in starts:
                writer.begin_html_part(1)
            for border in starts.get(start, ()):
                within.append(border.number)
                writer.write_html(render_to_string("retrieval/_passage_border.html", {"border": border}).strip())
            if start in anchors:
                writer.write_html(f'<span id="{anchors[start]}"></span>')
            _write_passage_words(writer, start, end, within)


def _write_passage_words(writer: HtmlWriter, start: int, end: int, passage_numbers: Sequence[int]) -> None:
    if start == end:
        return
    if len(passage_numbers) < 2:
        writer.write_words(start, end)
        return
    label = escape(_("In passages {}").format(", ".join(map(str, passage_numbers))))
    writer.write_html(f'<span class="overlap" title="{label}"><span class="visually-hidden">{label}: </span>')
    writer.write_words(start, end)
    writer.write_html("</span>")


def find_borders(document: Document, user: AnyUser) -> PassageBorders | None:
    """Return where the document's passages begin and end; None if the user may not see borders."""
    if not may_debug(user):
        return None
    fields = ("ordinal", "start", "end", "page", "heading_path", "token_count", "canonical_questions", "document")
    address = _make_admin_address(document, user)
    shown: list[ShownBorder] = []
    reached = 0
    for chunk in Chunk.objects.filter(document=document).only(*fields).order_by("start", "ordinal"):
        shown.append(ShownBorder(chunk, max(0, min(reached, chunk.end) - chunk.start), address(chunk)))
        reached = max(reached, chunk.end)
    return PassageBorders(shown)


def _make_admin_address(document: Document, user: AnyUser) -> Callable[[Chunk], str]:
    may_view = is_staff_with(user, "retrieval.view_chunk")
    if not may_view or not Collection.objects.curated_by(user).filter(pk=document.collection_id).exists():
        return lambda _chunk: ""
    return lambda chunk: reverse("admin:retrieval_chunk_change", args=[chunk.pk])
