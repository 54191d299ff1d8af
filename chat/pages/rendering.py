"""Renders answers as HTML."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat.answering.checking.addresses import canonical
from chat.answering.checking.citations import MARKER, blank_code, find_undecided
from chat.answering.excerpt_markdown import GOES_ON
from chat.pages.cards import Cited
from chat.pages.records import record_paragraphs
from retrieval.viewer import markdown_marks
from retrieval.viewer.markdown_marks import Mark, SourceLines
from retrieval.viewer.markdown_page import SafeRenderer, safe_markdown

# The environment contains ``markers``; ``link``, which renders a marker at an offset; and ``addresses``
# (:func:`permit`).

_TOP_HEADING = 3  # The page uses levels 1 and 2.


def _parse_citation(state: StateInline, silent: bool) -> bool:
    """Parse known markers before links, so that text cannot imitate them."""
    match = MARKER.match(state.src, state.pos)
    if match is None or int(match[1]) not in state.env["markers"]:
        return False
    if not silent:
        words = state.pending.rstrip(" ")
        blanks, state.pending = state.pending[len(words) :], words
        token = state.push("citation", "", 0)
        token.content = match.group()
        token.meta = {"marker": int(match[1]), "at": state.pos, "blanks": blanks}
    state.pos = match.end()
    return True


def _link_citations(state: StateCore) -> None:
    """Turn markers with a citation into links."""
    lines = SourceLines(state.src)
    for opening, inline in pairwise(state.tokens):
        if inline.type != "inline":
            continue
        origins = lines.origins(inline, opening)
        for child in inline.children or []:
            if child.type != "citation":
                continue
            position = origins[child.meta["at"]] if child.meta["at"] < len(origins) else -1
            child.meta["html"] = state.env["link"](child.meta["marker"], position)
            if not child.meta["html"]:
                child.type, child.content = "text", child.meta["blanks"] + child.content


def _name_lone_markers(state: StateCore) -> None:
    """Label a paragraph of markers below a table or code."""
    for opening, inline in pairwise(state.tokens):
        if opening.type != "paragraph_open" or opening.hidden or inline.type != "inline":
            continue
        children = inline.children or []
        markers = sum(child.type == "citation" for child in children)
        if markers and all(child.type == "citation" or not child.content.strip() for child in children):
            opening.attrSet("class", "cited-block")
            children.insert(0, Token("cited_label", "", 0, content=ngettext("Source", "Sources", markers)))


def permit(addresses: Collection[str]) -> dict[str, str]:
    """Return linkable addresses by canonical form."""
    linked = (MARKDOWN.normalizeLink(address) for address in addresses)
    return {plain: address for address in linked if (plain := canonical(address))}


def _unlink(state: StateCore) -> None:
    """Replace unknown links by text; others get the source's spelling."""
    permitted = state.env.get("addresses", {})
    for token in state.tokens:
        if token.type != "inline" or not any(child.type == "link_open" for child in token.children or []):
            continue
        children: list[Token] = []
        refused = ""
        label = ""
        for child in token.children or []:
            if child.type == "link_open":
                address = str(child.attrs["href"])
                if (known := permitted.get(canonical(address))) is not None:
                    child.attrSet("href", known)
                else:
                    refused, label = address, ""
                    continue
            elif child.type == "link_close" and refused:
                if label != MARKDOWN.normalizeLinkText(refused) and label != refused:
                    children.append(Token("text", "", 0, content=f" ({refused})"))
                refused = ""
                continue
            label += child.content
            children.append(child)
        token.children = children


_LABEL = re.compile(r"[^\W\d_][\w -]{0,24}: ")


class _AnswerRenderer(SafeRenderer):
    def cited_label(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f'<span class="cited-label">{escape(tokens[idx].content)}</span>'

    def softbreak(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Keep line breaks before a label, as in the head of a mail."""
        return "<br>\n" if _LABEL.match("".join(token.content for token in tokens[idx + 1 : idx + 2])) else "\n"

    def citation(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return str(tokens[idx].meta["html"])


def _build_markdown() -> MarkdownIt:
    markdown = safe_markdown(top_heading=_TOP_HEADING, renderer=_AnswerRenderer)
    markdown.inline.ruler.before("link", "citation", _parse_citation)
    markdown.core.ruler.push("name_lone_markers", _name_lone_markers)
    markdown.core.ruler.after("inline", "unlink", _unlink)
    markdown.core.ruler.after("inline", "link_citations", _link_citations)
    return markdown.use(record_paragraphs)


MARKDOWN = _build_markdown()


_REASONS = {
    "number": gettext_lazy("a number in it is not in the source"),
    "name": gettext_lazy("a name in it is not in the source"),
    "negation": gettext_lazy("the source seems to say the opposite"),
    "words": gettext_lazy("the source does not say this in these words"),
    "uncited": gettext_lazy("it names no source"),
}
_CLOSING = re.compile(rf"(?:[ \t]*{MARKER.pattern})*[.!?…]?(?:[ \t]*{MARKER.pattern})*")


@dataclass(frozen=True, slots=True)
class Doubt:
    """An unsupported sentence, ``text[start:end]``."""

    start: int
    end: int
    reason: str


def doubts(statements: Iterable[Mapping[str, Any]]) -> tuple[Doubt, ...]:
    """Return the unsupported statements in order."""
    doubted = [
        Doubt(
            statement["start"],
            statement["end"],
            " ".join(f"{capfirst(reason_label(reason))}." for reason in statement["reasons"] or ["words"]),
        )
        for statement in statements
        if statement["supported"] is False
    ]
    return tuple(sorted(doubted, key=lambda doubt: doubt.start))


def count_checked(statements: Iterable[Mapping[str, Any]]) -> int:
    return sum(statement["supported"] is not None for statement in statements)


def add_doubt_remarks(text: str, doubts: Sequence[Doubt]) -> str:
    """Return the text with a remark behind each doubtful sentence."""
    remark = _("(not supported by the sources)")
    for doubt in sorted(doubts, key=lambda doubt: doubt.end, reverse=True):
        closing = _CLOSING.match(text, doubt.end)
        at = closing.end() if closing else doubt.end
        text = f"{text[:at]} {remark}{text[at:]}"
    return text


def reason_label(reason: str) -> str:
    return str(_REASONS.get(reason, _REASONS["words"]))


_PREVIEW = 'data-title="{title}" data-where="{where}" data-quote="{quote}" data-support="{support}" aria-label="{name}"'
_LINKED = f'<sup class="cite"><a href="{{href}}" {_PREVIEW}>{{marker}}</a></sup>'
_UNLINKED = f'<sup class="cite"><span tabindex="0" role="note" {_PREVIEW}>{{marker}}</span></sup>'
_MARK_END = "</mark>"
_SIGN = (
    '<span class="doubt" tabindex="0" role="note" data-doubt-sign="{number}" data-title="{title}"'
    ' data-reason="{reason}" aria-label="{title} {reason}">?</span>'
)
LARGEST_CHARACTERS = 4000


def answer_html(
    text: str, citations: Sequence[Cited], doubts: Sequence[Doubt] = (), addresses: Collection[str] = ()
) -> SafeString:
    """Render a whole answer with citations, signs of doubt, and links to ``addresses``."""
    # The parser turns CRLF into one character.
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
        return citation_html(cited) + (_link_rest(cited) if goes_on and cited.href else "")

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
        html = _add_sign(html, number, doubt)
    return mark_safe(html)  # noqa: S308


def _add_sign(html: str, number: int, doubt: Doubt) -> str:
    """Add the sign behind the mark, which escaped text cannot imitate."""
    piece = html.rfind(f'data-doubt="{number}"')
    if piece < 0:
        return html
    at = html.index(_MARK_END, piece) + len(_MARK_END)
    sign = format_html(_SIGN, number=number, title=_("Not supported by the sources."), reason=doubt.reason)
    return html[:at] + sign + html[at:]


def _link_rest(cited: Cited) -> SafeString:
    return format_html(' <a class="read-on" href="{}">{}</a>', cited.href, _("Read on"))


def citation_html(cited: Cited) -> SafeString:
    """Render a marker with the data of its preview."""
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


def streamed_html(
    text: str, answer_id: object, markers: Mapping[int, str], before: str = "", at: Collection[int] | None = None
) -> SafeString:
    """Return a piece of the unfinished line, escaped, with linked markers.

    Signs of Markdown are removed to avoid flicker. ``before`` shows open code. ``at`` are the markers' offsets, None
    for each ``[n]``.
    """
    whole = before + text
    html = []
    position = len(before)
    for match in MARKER.finditer(blank_code(whole), position, find_undecided(whole)):
        marker = int(match.group(1))
        if marker not in markers or (at is not None and match.start() not in at):
            continue
        words = _remove_signs(whole[position : match.start()]).rstrip(" ")
        html += [escape(words), _link_source(answer_id, marker, markers)]
        position = match.end()
    html.append(escape(_remove_signs(whole[position:])))
    return mark_safe("".join(html))  # noqa: S308


def _remove_signs(text: str) -> str:
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
    """Renders a growing answer: complete lines as Markdown, the last as text.

    Rendering again after growth by a tenth keeps the work proportional. Other streams wait, so text beyond
    ``LARGEST_CHARACTERS`` stays plain until the end.
    """

    def __init__(self, answer_id: object, titles: Mapping[int, str]) -> None:
        self._answer_id = answer_id
        self._titles = titles
        self._text = ""
        # Offsets of markers; None: each number in brackets.
        self._at: set[int] | None = None
        self._rendered_characters = 0

    def feed(self, text: str, at: Collection[int] | None = None) -> Lines | SafeString:
        """Return text to append, or lines that replace all shown text."""
        if at is not None:
            self._at = (self._at or set()) | {len(self._text) + each for each in at}
        before, self._text = self._text, self._text + text
        if len(self._text) > LARGEST_CHARACTERS:
            return mark_safe(escape(_remove_signs(text)))  # noqa: S308
        lines = self._text[: self._text.rfind("\n") + 1]
        # Markdown needs the end of code over several lines.
        is_within_code = find_undecided(lines) < len(lines)
        if is_within_code or len(lines) <= 1.1 * self._rendered_characters:
            return streamed_html(text, self._answer_id, self._titles, before, self._at)
        self._rendered_characters = len(lines)
        env = {
            "markers": self._titles,
            "link": self._link,
        }
        html = mark_safe(MARKDOWN.render(lines, env))  # noqa: S308
        return Lines(html, streamed_html(self._text[len(lines) :], self._answer_id, self._titles, lines, self._at))

    def _link(self, marker: int, at: int) -> str:
        is_marker = self._at is None or at in self._at
        return _link_source(self._answer_id, marker, self._titles) if is_marker else ""


@dataclass(frozen=True, slots=True)
class Lines:
    """Complete lines and the unfinished last line."""

    whole: SafeString
    tail: SafeString
