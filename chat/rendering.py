"""From saved answers and streamed payloads to HTML.

Text of models and documents is untrusted: Markdown is rendered without HTML and without images, links lead to web and
mail addresses only, and everything else is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat.citations import MARKER
from chat.turns import Cited

_PREVIEW = 'data-title="{title}" data-where="{where}" data-quote="{quote}" data-support="{support}" aria-label="{name}"'
_LINKED = f'<sup class="cite"><a href="{{href}}" {_PREVIEW}>{{marker}}</a></sup>'
_UNLINKED = f'<sup class="cite"><span tabindex="0" role="note" {_PREVIEW}>{{marker}}</span></sup>'
_TOP_HEADING = 3  # The page's own headings are levels 1 and 2.


def answer_html(text: str, citations: Sequence[Cited]) -> SafeString:
    """A whole answer. The n-th mention of a marker links to the n-th citation with that marker, the last one for all
    further mentions; a marker without a citation stays as it is written."""
    by_marker: dict[int, list[Cited]] = {}
    for cited in citations:
        by_marker.setdefault(cited.marker, []).append(cited)
    seen: Counter[int] = Counter()

    def link(marker: int) -> str:
        places = by_marker[marker]
        cited = places[min(seen[marker], len(places) - 1)]
        seen[marker] += 1
        return citation_html(cited)

    html: str = _MARKDOWN.render(text, {"links": dict.fromkeys(by_marker, link)})
    return mark_safe(html)  # noqa: S308


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


def streamed_html(text: str, answer_id: object, markers: Mapping[int, str]) -> SafeString:
    """A piece of the line that is being written: escaped, its markers links to the sources beside it.

    Signs of emphasis and code are left out until the line is rendered as Markdown, or they would flash up.
    """
    text = text.replace("**", "").replace("`", "")
    html = []
    position = 0
    for match in MARKER.finditer(text):
        marker = int(match.group(1))
        if marker not in markers:
            continue
        html += [escape(text[position : match.start()].rstrip(" ")), _source_link(answer_id, marker, markers)]
        position = match.end()
    html.append(escape(text[position:]))
    return mark_safe("".join(html))  # noqa: S308


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
    grown by a twentieth.
    """

    def __init__(self, answer_id: object, titles: Mapping[int, str]) -> None:
        self._answer_id = answer_id
        self._titles = titles
        self._open = ""
        self._tail = ""

    def feed(self, text: str) -> Lines | SafeString:
        """What to show for this piece: text to append, or lines that replace what was appended."""
        self._tail += text
        complete, newline, rest = self._tail.rpartition("\n")
        if not newline or len(complete) * 20 < len(self._open):
            return streamed_html(text, self._answer_id, self._titles)
        self._open += complete + newline
        self._tail = rest
        at = _start_of_last_block(self._open)
        finished, self._open = self._open[:at], self._open[at:]
        return Lines(
            self._render(finished),
            self._render(self._open),
            streamed_html(rest, self._answer_id, self._titles),
        )

    def _render(self, text: str) -> SafeString:
        links = dict.fromkeys(self._titles, lambda marker: _source_link(self._answer_id, marker, self._titles))
        return mark_safe(_MARKDOWN.render(text, {"links": links}) if text.strip() else "")  # noqa: S308


class Lines:
    """Blocks that will not change any more, the block that still grows, and the line that is being written."""

    __slots__ = ("finished", "open", "tail")

    def __init__(self, finished: SafeString, open_: SafeString, tail: SafeString) -> None:
        self.finished = finished
        self.open = open_
        self.tail = tail


def _start_of_last_block(text: str) -> int:
    """Where the last top-level Markdown block begins; 0 when there is only one."""
    blocks = [token.map[0] for token in _MARKDOWN.parse(text, {"links": {}}) if token.level == 0 and token.map]
    if len(blocks) < 2:
        return 0
    return sum(len(line) + 1 for line in text.split("\n")[: blocks[-1]])


# Markdown ------------------------------------------------------------------------------------------------------------


def _is_safe_link(url: str) -> bool:
    """Whether a model may send a reader there: absolute web and mail addresses."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (parts.scheme in ("http", "https") and bool(parts.netloc)) or parts.scheme == "mailto"


def _citation(state: StateInline, silent: bool) -> bool:
    """An inline rule: ``[n]`` of a known source. It comes before links, so that no text can pass its own off as one."""
    match = MARKER.match(state.src, state.pos)
    if match is None or int(match.group(1)) not in state.env["links"]:
        return False
    if not silent:
        state.pending = state.pending.rstrip(" ")
        state.push("citation", "", 0).meta = {"marker": int(match.group(1))}
    state.pos = match.end()
    return True


def _lower_headings(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _TOP_HEADING - 1)}"


class _Renderer(RendererHTML):
    def citation(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        marker = tokens[idx].meta["marker"]
        return str(env["links"][marker](marker))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        tokens[idx].attrSet("rel", "nofollow noopener noreferrer")
        return self.renderToken(tokens, idx, options, env)

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        label = escape(_("Table"))
        return f'<div class="table-scroll" role="region" tabindex="0" aria-label="{label}"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return super().fence(tokens, idx, options, env).replace("<pre>", '<pre tabindex="0">', 1)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return super().code_block(tokens, idx, options, env).replace("<pre>", '<pre tabindex="0">', 1)


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    markdown.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    markdown.inline.ruler.before("link", "citation", _citation)
    markdown.core.ruler.push("lower_headings", _lower_headings)
    markdown.validateLink = _is_safe_link  # type: ignore[method-assign]
    return markdown


_MARKDOWN = _markdown()
