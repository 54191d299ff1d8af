from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from chat.answering.excerpt_markdown import GOES_ON
from chat.pages.answer_markdown import MARKDOWN, map_linkable_addresses
from chat.pages.cards import CitedPassage
from chat.pages.doubts import DoubtfulRange
from retrieval.viewer import markdown_marks
from retrieval.viewer.markdown_marks import MarkedRange

# `render_answer` passes an environment to the Markdown parser: ``markers``; ``link``, which returns the HTML of the
# marker at an offset; and ``addresses`` (see :func:`map_linkable_addresses`).

_PREVIEW = 'data-title="{title}" data-where="{where}" data-quote="{quote}" data-support="{support}" aria-label="{name}"'
_LINKED = f'<sup class="cite"><a href="{{href}}" {_PREVIEW}>{{marker}}</a></sup>'
_UNLINKED = f'<sup class="cite"><span tabindex="0" role="note" {_PREVIEW}>{{marker}}</span></sup>'
_MARK_END = "</mark>"
_SIGN = (
    '<span class="doubt" tabindex="0" role="note" data-doubt-sign="{number}" data-title="{title}"'
    ' data-reason="{reason}" aria-label="{title} {reason}">?</span>'
)


_CHANGED = (
    '<sup class="cite"><a class="changed-sign" href="#{anchor}" data-change title="{kind}" aria-label="{kind}">'
    "≠</a></sup>"
)


def render_answer(
    text: str, citations: Sequence[CitedPassage], doubts: Sequence[DoubtfulRange] = (), addresses: Collection[str] = ()
) -> SafeString:
    """Render a finished answer with links to its citations and warning signs at doubtful sentences.

    Apart from citations, only ``addresses`` become links.
    """
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
        return render_citation(cited) + (_render_read_on_link(cited) if goes_on and cited.href else "")

    marks = [MarkedRange(d.start, d.end, {"class": "unsupported", "data-doubt": str(n)}) for n, d in enumerate(doubts)]
    places = {(cited.marked_start, cited.marked_end) for cited in citations}
    marks += [
        MarkedRange(start, end, {"class": "nearest"}) for start, end in places if start is not None and end is not None
    ]
    env = {
        "markers": {cited.marker for cited in citations},
        "link": link,
        "addresses": map_linkable_addresses(addresses),
    }
    html = markdown_marks.render_with_marks(MARKDOWN, text, marks, env)
    for number, doubt in enumerate(doubts):
        html = _add_doubt_sign(html, number, doubt)
    return mark_safe(html)  # noqa: S308


def _add_doubt_sign(html: str, number: int, doubt: DoubtfulRange) -> str:
    """Insert a warning sign after the doubtful words, whose element has the attribute ``data-doubt``.

    The model cannot write this attribute, because the answer's text is escaped.
    """
    piece = html.rfind(f'data-doubt="{number}"')
    if piece < 0:
        return html
    at = html.index(_MARK_END, piece) + len(_MARK_END)
    sign = format_html(_SIGN, number=number, title=_("Not supported by the sources."), reason=doubt.reason)
    return html[:at] + sign + html[at:]


def _render_read_on_link(cited: CitedPassage) -> SafeString:
    return format_html(' <a class="read-on" href="{}">{}</a>', cited.href, _("Read on"))


def render_citation(cited: CitedPassage) -> SafeString:
    template = _LINKED if cited.href else _UNLINKED
    html: SafeString = format_html(
        template,
        href=cited.href,
        title=cited.title,
        where=cited.where,
        quote=cited.preview,
        support=cited.support_description,
        name=cited.name,
        marker=cited.marker,
    )
    if cited.change is not None:
        html += format_html(_CHANGED, anchor=cited.change.anchor, kind=cited.change.kind.label)
    return html
