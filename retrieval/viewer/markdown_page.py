"""Render a document's Markdown with anchors, links and the marked passage."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from html import escape
from urllib.parse import unquote, urlsplit

from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from retrieval.text.extracted import find_line_starts
from retrieval.viewer.markdown_marks import MarkedRange, enable_range_marks, parse
from retrieval.viewer.plain_text import PART_CHARACTERS, HtmlWriter


class SafeRenderer(RendererHTML):
    """A renderer of Markdown whose links send no referrer, and whose tables and code can scroll."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        if is_web_or_mail_address(str(tokens[idx].attrs["href"])):
            tokens[idx].attrSet("rel", "nofollow noopener noreferrer")
        return self.renderToken(tokens, idx, options, env)

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        label = escape(_("Table"))
        return f'<div class="table-scroll" role="group" tabindex="0" aria-label="{label}"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return super().fence(tokens, idx, options, env).replace("<pre>", '<pre tabindex="0">', 1)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return super().code_block(tokens, idx, options, env).replace("<pre>", '<pre tabindex="0">', 1)


def build_safe_markdown(*, top_heading: int, renderer: type[SafeRenderer] = SafeRenderer) -> MarkdownIt:
    """Return a parser of CommonMark with tables and strikethrough, without HTML and images.

    It can mark ranges (:mod:`retrieval.viewer.markdown_marks`).
    """

    def lower_headings(state: StateCore) -> None:
        for token in state.tokens:
            if token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(6, int(token.tag[1]) + top_heading - 1)}"

    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=renderer)
    markdown.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    markdown.core.ruler.push("lower_headings", lower_headings)
    markdown.core.ruler.push("align_by_class", _set_alignment_classes)
    markdown.validateLink = is_web_or_mail_address  # type: ignore[method-assign]
    return markdown.use(enable_range_marks)


def is_web_or_mail_address(url: str) -> bool:
    """Return whether a link in untrusted text may be shown: an absolute web address or a mail address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (parts.scheme in ("http", "https") and bool(parts.netloc)) or parts.scheme == "mailto"


def _set_alignment_classes(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in ("th_open", "td_open") and (style := token.attrs.pop("style", None)):
            token.attrSet("class", "align-" + str(style).removeprefix("text-align:"))


_LINE_BREAKS = "line_breaks"

Hrefs = Callable[[AbstractSet[str]], Mapping[str, str]]
"""Maps sources of documents to the addresses of existing documents."""


def render_document(
    text: str,
    *,
    body_start: int = 0,
    passage: tuple[int, int] | None = None,
    source: str = "",
    hrefs: Hrefs = lambda sources: {},
    line_breaks: bool = False,
    page_starts: Sequence[int] = (),
) -> list[str]:
    """Return ``text`` as HTML, in parts of a few screens each.

    - Text before ``body_start`` is shown as plain text.
    - Top-level headings have the id ``section-OFFSET``.
    - The text in the range ``passage`` is marked. The first marked words have the id ``passage``.
    - Links relative to ``source`` lead to the documents in ``hrefs``, or become plain words.
    - ``line_breaks`` keeps line ends in paragraphs.
    """
    front = HtmlWriter(text, passage)
    if body_start:
        front.write_html('<pre class="front-matter" tabindex="0"><code>')
        front.write_words(0, body_start)
        front.write_html("</code></pre>\n")
    body = text[body_start:]
    marks = []
    if passage and passage[1] > body_start:
        marks = [
            MarkedRange(passage[0] - body_start, passage[1] - body_start, id="" if front.has_marked else "passage")
        ]
    env: dict[str, object] = {_LINE_BREAKS: line_breaks}
    tokens = parse(_MARKDOWN, body, marks, env)
    starts = find_line_starts(body)
    sections = _add_heading_anchors(tokens, starts, body_start)
    _resolve_links(tokens, source, sections, hrefs)
    parts = front.html_parts
    for group in _group_tokens(tokens, starts, {start - body_start for start in page_starts}):
        parts.append(_MARKDOWN.renderer.render(group, _MARKDOWN.options, env))
    return parts


def _add_heading_anchors(tokens: Sequence[Token], starts: Sequence[int], body_start: int) -> dict[str, str]:
    anchors: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            anchor = f"section-{starts[token.map[0]] + body_start}"
            token.attrSet("id", anchor)
            words = "".join(child.content for child in tokens[at + 1].children or ())
            name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            anchors[f"{name}-{seen[name]}" if seen[name] else name] = anchor
            seen[name] += 1
    return anchors


def _resolve_links(tokens: Sequence[Token], source: str, sections: Mapping[str, str], hrefs: Hrefs) -> None:
    inlines = [token for token in tokens if token.type == "inline" and token.children]
    written = {
        str(child.attrs["href"]) for token in inlines for child in token.children or () if child.type == "link_open"
    }
    beside = {href: path for href in written if (path := _find_source(href, source))}
    known = hrefs(set(beside.values())) if beside else {}
    for token in inlines:
        kept: list[Token] = []
        leads: list[bool] = []
        for child in token.children or ():
            if child.type == "link_open":
                href = str(child.attrs["href"])
                if href.startswith("#"):
                    anchor = sections.get(unquote(href[1:]).lower(), "")
                    target = f"#{anchor}" if anchor else ""
                elif is_web_or_mail_address(href):
                    target = href
                else:
                    target = known.get(beside.get(href, ""), "")
                child.attrSet("href", target)
                leads.append(bool(target))
            if child.type not in ("link_open", "link_close") or leads[-1]:
                kept.append(child)
            if child.type == "link_close":
                leads.pop()
        token.children = kept


def _find_source(href: str, source: str) -> str:
    try:
        parts = urlsplit(href)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
        return ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), unquote(parts.path)))
    return "" if path.startswith("..") or "\0" in path else path


class _DocumentRenderer(SafeRenderer):
    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = escape(self.renderInlineAsText(tokens[idx].children, options, env))
        return f'<span class="picture-words">{words}</span>' if words.strip() else ""

    def softbreak(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "<br>\n" if env.get(_LINE_BREAKS) else "\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        html = super().fence(tokens, idx, options, env)
        language = tokens[idx].info.split(maxsplit=1)
        return html.replace("<pre ", f'<pre data-language="{escape(language[0])}" ', 1) if language else html


def _group_tokens(tokens: Sequence[Token], starts: Sequence[int], page_starts: AbstractSet[int]) -> list[list[Token]]:
    groups: list[list[Token]] = [[]]
    size = 0
    for token in tokens:
        if token.level == 0 and token.nesting >= 0 and token.map:
            begins_page = starts[token.map[0]] in page_starts and bool(groups[-1])
            if begins_page or (size >= PART_CHARACTERS and not page_starts):
                groups.append([])
                size = 0
            first, last = (starts[min(line, len(starts) - 1)] for line in token.map)
            size += last - first
        groups[-1].append(token)
    return groups if groups[0] else []


_MARKDOWN = build_safe_markdown(top_heading=2, renderer=_DocumentRenderer).enable("image")
# `_resolve_links` checks the links after parsing.
_MARKDOWN.validateLink = lambda url: True  # type: ignore[method-assign]
