"""From saved answers and streamed payloads to HTML.

Text of models and documents is untrusted: Markdown is rendered without HTML and without images, links lead only to
addresses that stand in a cited source (others are shown as text), and everything else is escaped.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from chat.answering.citations import MARKER
from chat.answering.code_spans import blank_code, context, settled
from chat.answering.shown_passage import GOES_ON
from chat.pages.answer_markdown import MARKDOWN, permit
from chat.pages.cards import Cited
from chat.pages.doubts import Doubt
from retrieval.viewer import markdown_marks
from retrieval.viewer.markdown_marks import Mark

_PREVIEW = 'data-title="{title}" data-where="{where}" data-quote="{quote}" data-support="{support}" aria-label="{name}"'
_LINKED = f'<sup class="cite"><a href="{{href}}" {_PREVIEW}>{{marker}}</a></sup>'
_UNLINKED = f'<sup class="cite"><span tabindex="0" role="note" {_PREVIEW}>{{marker}}</span></sup>'
_MARK_END = "</mark>"
_SIGN = (
    '<span class="doubt" tabindex="0" role="note" data-doubt-sign="{number}" data-title="{title}"'
    ' data-reason="{reason}" aria-label="{title} {reason}">?</span>'
)
LARGEST_OPEN_CHARACTERS = 3000


def answer_html(
    text: str, citations: Sequence[Cited], doubts: Sequence[Doubt] = (), addresses: Collection[str] = ()
) -> SafeString:
    """A whole answer. Each marker links to the citation that stands at its position; a marker without one stays as it
    is written. Sentences in doubt are marked, and a sign behind each says why. Links lead to one of the ``addresses``
    alone."""
    # The parser makes all line ends one character.
    line_ends = [match.start() for match in re.finditer("\r\n", text)]
    placed = {
        (cited.marker, cited.marker_start and cited.marker_start - bisect_left(line_ends, cited.marker_start)): cited
        for cited in citations
    }

    def link(marker: int, at: int) -> str:
        cited = placed.get((marker, at)) or placed.get((marker, None))
        if cited is None:
            return ""
        goes_on = cited.verbatim and text[:at].endswith(GOES_ON + " ")
        return citation_html(cited) + (_read_on(cited) if goes_on and cited.href else "")

    marks = [Mark(d.start, d.end, {"class": "unsupported", "data-doubt": str(n)}) for n, d in enumerate(doubts)]
    places = {(cited.marked_start, cited.marked_end) for cited in citations}
    marks += [Mark(start, end, {"class": "nearest"}) for start, end in places if start is not None and end is not None]
    env = {
        "markers": {cited.marker for cited in citations},
        "link": link,
        "addresses": permit(addresses),
    }
    html = markdown_marks.render(MARKDOWN, text, marks, env)
    for number, doubt in enumerate(doubts):
        html = _with_sign(html, number, doubt)
    return mark_safe(html)  # noqa: S308


def _with_sign(html: str, number: int, doubt: Doubt) -> str:
    """The sign stands behind the last piece of the mark. Nothing that a model wrote can look like one: quotation marks
    are escaped in text and in attributes."""
    piece = html.rfind(f'data-doubt="{number}"')
    if piece < 0:
        return html
    at = html.index(_MARK_END, piece) + len(_MARK_END)
    sign = format_html(_SIGN, number=number, title=_("Not supported by the sources."), reason=doubt.reason)
    return html[:at] + sign + html[at:]


def _read_on(cited: Cited) -> SafeString:
    """The link to the rest of a section that is longer than what the answer shows."""
    return format_html(' <a class="read-on" href="{}">{}</a>', cited.href, _("Read on"))


def citation_html(cited: Cited) -> SafeString:
    """The superscript link of a marker. What its preview shows travels in data attributes."""
    template = _LINKED if cited.href else _UNLINKED
    html: SafeString = format_html(
        template,
        href=cited.href,
        title=cited.title,
        where=cited.where,
        quote=cited.preview,
        support=cited.support_in_words,
        name=cited.name,
        marker=cited.marker,
    )
    return html


def streamed_html(text: str, answer_id: object, markers: Mapping[int, str], before: str = "") -> SafeString:
    """A piece of the line that is being written: escaped, its markers links to the sources beside it.

    Signs of emphasis and code are left out until the line is rendered as Markdown, or they would flash up. ``before``
    is what stands in front of the piece, as far as it tells whether brackets stand in code (code_spans.context).
    """
    whole = before + text
    html = []
    position = len(before)
    for match in MARKER.finditer(blank_code(whole), position, settled(whole)):
        marker = int(match.group(1))
        if marker not in markers:
            continue
        words = _remove_signs(whole[position : match.start()]).rstrip(" ")
        html += [escape(words), _source_link(answer_id, marker, markers)]
        position = match.end()
    html.append(escape(_remove_signs(whole[position:])))
    return mark_safe("".join(html))  # noqa: S308


def _remove_signs(text: str) -> str:
    return text.replace("**", "").replace("`", "")


def _source_link(answer_id: object, marker: int, titles: Mapping[int, str]) -> SafeString:
    return format_html(
        '<sup class="cite"><a href="#answer-{}-source-{}" aria-label="{}">{}</a></sup>',
        answer_id,
        marker,
        _("Source %(marker)d: %(title)s") % {"marker": marker, "title": titles[marker]},
        marker,
    )


class StreamedMarkdown:
    """Renders an answer while it grows: finished blocks once, the open block at line ends, the last line as text.

    The work and the bytes stay proportional to the answer, because a long open block is rendered again only when it has
    grown by a twentieth. Each piece takes a bounded time, in which no other stream goes on: from a block on that is
    longer than ``LARGEST_OPEN_CHARACTERS`` the answer is shown as text until it is complete.
    """

    def __init__(self, answer_id: object, titles: Mapping[int, str]) -> None:
        self._answer_id = answer_id
        self._titles = titles
        self._open = ""
        self._tail = ""
        # What tells where code is: in front of the next piece, and at the beginning of the last line.
        self._before = self._before_line = ""
        self._is_text = False

    def feed(self, text: str) -> Lines | SafeString:
        """What to show for this piece: text to append, or lines that replace what was appended."""
        before = self._before
        self._before = context(before + text)
        self._is_text = self._is_text or len(self._open) + len(self._tail) + len(text) > LARGEST_OPEN_CHARACTERS
        if self._is_text:
            return streamed_html(text, self._answer_id, self._titles, before)
        if "\n" in text:
            self._before_line = context(before + text[: text.rfind("\n") + 1])
        self._tail += text
        complete, newline, rest = self._tail.rpartition("\n")
        # Code over two lines is none to Markdown until its end has come.
        is_within_code = settled(self._before_line) < len(self._before_line)
        if not newline or is_within_code or len(complete) * 20 < len(self._open):
            return streamed_html(text, self._answer_id, self._titles, before)
        self._open += complete + newline
        self._tail = rest
        finished, open_ = self._render_open()
        return Lines(finished, open_, streamed_html(rest, self._answer_id, self._titles, self._before_line))

    def _render_open(self) -> tuple[SafeString, SafeString]:
        """The blocks that are finished now, and the last one, which alone stays open."""
        env = {
            "markers": self._titles,
            "link": lambda marker, _at: _source_link(self._answer_id, marker, self._titles),
        }
        tokens = MARKDOWN.parse(self._open, env)
        blocks = [(at, token.map[0]) for at, token in enumerate(tokens) if token.level == 0 and token.map]
        split, line = blocks[-1] if len(blocks) > 1 else (0, 0)
        self._open = "\n".join(self._open.split("\n")[line:])
        finished, open_ = (
            mark_safe(MARKDOWN.renderer.render(part, MARKDOWN.options, env))  # noqa: S308
            for part in (tokens[:split], tokens[split:])
        )
        return finished, open_


@dataclass(frozen=True, slots=True)
class Lines:
    """Blocks that will not change any more, the block that still grows, and the line that is being written."""

    finished: SafeString
    open: SafeString
    tail: SafeString
