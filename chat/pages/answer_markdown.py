"""Parse the Markdown of answers. Markers (``[1]``) become citations; only addresses from the sources become links."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from django.utils.html import escape
from django.utils.translation import ngettext
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat.answering.checking.addresses import normalize_address
from chat.answering.checking.citations import MARKER
from chat.pages.records import add_record_layout
from retrieval.viewer.markdown_marks import SourceLines
from retrieval.viewer.markdown_page import SafeRenderer, build_safe_markdown

_TOP_HEADING = 3  # Headings begin at this level, because the page itself uses levels 1 and 2.


def _parse_citation(state: StateInline, silent: bool) -> bool:
    """Parse a marker of the answer. This rule runs before links, so that no link can imitate a marker."""
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
    lines = SourceLines(state.src)
    for opening, inline in pairwise(state.tokens):
        if inline.type != "inline":
            continue
        origins = lines.find_origins(inline, opening)
        for child in inline.children or []:
            if child.type != "citation":
                continue
            position = origins[child.meta["at"]] if child.meta["at"] < len(origins) else -1
            child.meta["html"] = state.env["link"](child.meta["marker"], position)
            if not child.meta["html"]:
                child.type, child.content = "text", child.meta["blanks"] + child.content


def _label_marker_paragraphs(state: StateCore) -> None:
    for opening, inline in pairwise(state.tokens):
        if opening.type != "paragraph_open" or opening.hidden or inline.type != "inline":
            continue
        children = inline.children or []
        markers = sum(child.type == "citation" for child in children)
        if markers and all(child.type == "citation" or not child.content.strip() for child in children):
            opening.attrSet("class", "cited-block")
            children.insert(0, Token("cited_label", "", 0, content=ngettext("Source", "Sources", markers)))


def map_linkable_addresses(addresses: Collection[str]) -> dict[str, str]:
    """Map each address that may become a link, in canonical form, to its spelling in the source."""
    linked = (MARKDOWN.normalizeLink(address) for address in addresses)
    return {plain: address for address in linked if (plain := normalize_address(address))}


def _remove_unknown_links(state: StateCore) -> None:
    """Replace a link by its text if no source contains its address. Other addresses are written as in the source."""
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
                if (known := permitted.get(normalize_address(address))) is not None:
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
        """Render a line break as a space. Before a label such as "From:", the line break stays."""
        return "<br>\n" if _LABEL.match("".join(token.content for token in tokens[idx + 1 : idx + 2])) else "\n"

    def citation(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return str(tokens[idx].meta["html"])


def _build_markdown_parser() -> MarkdownIt:
    markdown = build_safe_markdown(top_heading=_TOP_HEADING, renderer=_AnswerRenderer)
    markdown.inline.ruler.before("link", "citation", _parse_citation)
    markdown.core.ruler.push("label_marker_paragraphs", _label_marker_paragraphs)
    markdown.core.ruler.after("inline", "unlink", _remove_unknown_links)
    markdown.core.ruler.after("inline", "link_citations", _link_citations)
    return markdown.use(add_record_layout)


MARKDOWN = _build_markdown_parser()
