from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from chat.answering.checking.citations import MARKER, blank_out_code, find_unfinished_markup
from chat.pages.answer_markdown import MARKDOWN

# An unfinished answer beyond this many characters is shown as plain text until its end.
LARGEST_CHARACTERS = 4000


def render_line_piece(
    text: str, answer_id: object, markers: Mapping[int, str], before: str = "", at: Collection[int] | None = None
) -> SafeString:
    """Return a new piece of an unfinished line as HTML, with links for its markers (``[1]``).

    ``before`` is the line's earlier text, in which a code span may have begun. ``at`` are the offsets of markers; None:
    each ``[n]`` is a marker.
    """
    whole = before + text
    html = []
    position = len(before)
    for match in MARKER.finditer(blank_out_code(whole), position, find_unfinished_markup(whole)):
        marker = int(match.group(1))
        if marker not in markers or (at is not None and match.start() not in at):
            continue
        words = _remove_markdown_signs(whole[position : match.start()]).rstrip(" ")
        html += [escape(words), _link_source(answer_id, marker, markers)]
        position = match.end()
    html.append(escape(_remove_markdown_signs(whole[position:])))
    return mark_safe("".join(html))  # noqa: S308


def _remove_markdown_signs(text: str) -> str:
    return text.replace("**", "").replace("`", "")


def _link_source(answer_id: object, marker: int, titles: Mapping[int, str]) -> SafeString:
    return format_html(
        '<sup class="cite"><a href="#answer-{}-source-{}" aria-label="{}">{}</a></sup>',
        answer_id,
        marker,
        _("Source %(marker)d: %(title)s") % {"marker": marker, "title": titles[marker]},
        marker,
    )


class StreamedMarkdown:
    """Renders an answer while it grows: complete lines as Markdown, the last line as text.

    Lines are rendered as Markdown only when the text has grown by a tenth, so the work is proportional to its length.
    """

    def __init__(self, answer_id: object, titles: Mapping[int, str]) -> None:
        self._answer_id = answer_id
        self._titles = titles
        self._text = ""
        self._at: set[int] | None = None
        self._rendered_characters = 0

    def feed(self, text: str, at: Collection[int] | None = None) -> RenderedLines | SafeString:
        """Add ``text`` to the answer. Return HTML to append, or RenderedLines to replace the answer."""
        if at is not None:
            self._at = (self._at or set()) | {len(self._text) + each for each in at}
        before, self._text = self._text, self._text + text
        if len(self._text) > LARGEST_CHARACTERS:
            return mark_safe(escape(_remove_markdown_signs(text)))  # noqa: S308
        lines = self._text[: self._text.rfind("\n") + 1]
        is_within_code = find_unfinished_markup(lines) < len(lines)
        if is_within_code or len(lines) <= 1.1 * self._rendered_characters:
            return render_line_piece(text, self._answer_id, self._titles, before, self._at)
        self._rendered_characters = len(lines)
        env = {
            "markers": self._titles,
            "link": self._link_marker,
        }
        html = mark_safe(MARKDOWN.render(lines, env))  # noqa: S308
        return RenderedLines(
            html, render_line_piece(self._text[len(lines) :], self._answer_id, self._titles, lines, self._at)
        )

    def _link_marker(self, marker: int, at: int) -> str:
        is_marker = self._at is None or at in self._at
        return _link_source(self._answer_id, marker, self._titles) if is_marker else ""


@dataclass(frozen=True, slots=True)
class RenderedLines:
    """An unfinished answer: its complete lines as HTML, and its last line as text."""

    whole: SafeString
    tail: SafeString
