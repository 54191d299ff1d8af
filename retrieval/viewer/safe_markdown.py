"""Markdown of models and documents as HTML that nothing can be smuggled through.

Raw HTML is shown as text, nothing is loaded from anywhere, links lead to web and mail addresses, and no element carries
a style, which the site's policy would refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from django.utils.html import escape
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from retrieval.viewer.markdown_marks import mark_ranges


class SafeRenderer(RendererHTML):
    """Links that tell the other side nothing; tables and code that scroll, also with the keyboard."""

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


def safe_markdown(*, top_heading: int, renderer: type[SafeRenderer] = SafeRenderer) -> MarkdownIt:
    """A CommonMark parser with tables and strikethrough, without HTML and images, whose first heading level is
    ``top_heading``. It can mark ranges of its source: see :mod:`retrieval.viewer.markdown_marks`.
    """

    def lower_headings(state: StateCore) -> None:
        for token in state.tokens:
            if token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(6, int(token.tag[1]) + top_heading - 1)}"

    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=renderer)
    markdown.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    markdown.core.ruler.push("lower_headings", lower_headings)
    markdown.core.ruler.push("align_by_class", _align_by_class)
    markdown.validateLink = is_web_or_mail_address  # type: ignore[method-assign]
    return markdown.use(mark_ranges)


def is_web_or_mail_address(url: str) -> bool:
    """Whether text that is not trusted may send a reader there: absolute web and mail addresses."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (parts.scheme in ("http", "https") and bool(parts.netloc)) or parts.scheme == "mailto"


def _align_by_class(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in ("th_open", "td_open") and (style := token.attrs.pop("style", None)):
            token.attrSet("class", "align-" + str(style).removeprefix("text-align:"))
