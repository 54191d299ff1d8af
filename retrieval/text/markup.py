"""Remove markup of MkDocs, Hugo and GitHub that is not in CommonMark (standard Markdown)."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"<!--[^<>]{0,500}-->")
_IMAGE = re.compile(r"!\[[^\[\]]{0,300}+\](?:\([^()\n]{0,1000}+\)|\[[^\[\]\n]{0,100}+\])")
_EMPTY_LINK = re.compile(r"\[[ \t]*+\]\([^()\n]{0,1000}+\)")
_TARGET = r"[^\s()]{0,1000}+(?:\([^\s()]{0,100}+\)[^\s()]{0,100}+)?(?:[ \t]++\"[^\"\n]{0,200}+\")?\)"
_LINK = re.compile(rf"(?<!\w)\[([^\[\]\n]{{1,300}}+)\]\({_TARGET}")
_LINK_BESIDE = re.compile(rf"(?<!\w)\[([^\[\]\n]{{1,300}}+)\]\((?!https?://|mailto:|//){_TARGET}")
# Attributes: {: .wide } in Kramdown, { class="wide" } in Python-Markdown, {#place} in both and Hugo.
_ATTRIBUTES = re.compile(
    r"(?<![ \t])[ \t]*+\{[ \t]*+(?:[:.#][ \t]*+[.#A-Za-z]|[A-Za-z-]{1,30}+=[\"'])[^{}\n]{0,200}+\}"
)
_FOOTNOTE = re.compile(r"\[\^[\w-]{1,40}+\](?::[ \t])?")
_TAG = re.compile(
    r"</?(?:a|abbr|b|br|center|details|div|em|font|i|img|kbd|mark|p|small|span|strong|sub|summary|sup|u)"
    r"(?:[ \t/][^<>\n]{0,300}+)?>",
    re.IGNORECASE,
)
_TASK = re.compile(r"^([ \t]*+(?:[-*+]|\d{1,3}[.)])?[ \t]*+)\[[ xX]\][ \t]++(?=\S)", re.MULTILINE)
_NOTE = re.compile(
    r"(?P<indent>[ \t]*+)(?:(?:!!!|\?\?\?\+?)[ \t]?(?P<kind>[A-Za-z][\w-]{0,30}+)|===[+!]?(?=[ \t]+[\"']))"
    r"(?:[ \t]++inline(?:[ \t]++end)?)?"
    r"(?:[ \t]++(?:\"(?P<title>[^\"\n]{0,200}+)\"|'(?P<other>[^'\n]{0,200}+)'))?[ \t]*+"
)
_FENCES = ("```", "~~~")
# A text without these characters matches no pattern of `strip_markup`.
_OPENINGS = frozenset("<[{")


def opens_mkdocs_block(line: str) -> bool:
    """Return whether the line begins a note or tab of MkDocs, whose text is indented."""
    return _NOTE.fullmatch(line) is not None


def strip_markup(text: str, *, all_links: bool = False) -> str:
    """Return the text without images, comments, tags, attributes, footnote signs and task boxes (``[x]``).

    Links within the site become plain words. If ``all_links`` is true, all links do.
    """
    if _OPENINGS.isdisjoint(text):
        return text
    for pattern in (_COMMENT, _IMAGE, _EMPTY_LINK, _TAG):
        text = pattern.sub("", text)
    text = (_LINK if all_links else _LINK_BESIDE).sub(r"\1", text)
    for pattern in (_ATTRIBUTES, _FOOTNOTE):
        text = pattern.sub("", text)
    return _TASK.sub(r"\1", text)


def convert_notes(text: str) -> str:
    """Convert MkDocs notes to paragraphs below a bold title."""
    lines: list[str] = []
    depths: list[tuple[int, int]] = []
    is_code = False
    given = text.split("\n")
    for number, line in enumerate(given):
        indent = len(line) - len(line.lstrip())
        while line.strip() and depths and indent <= depths[-1][0]:
            depths.pop()
        shown = line[sum(depth for _, depth in depths) :] if line.strip() else ""
        is_code ^= shown.lstrip().startswith(_FENCES)
        if is_code or (match := _NOTE.fullmatch(line)) is None:
            lines.append(shown)
            continue
        title = match["title"] if match["title"] is not None else match["other"]
        title = (match["kind"] or "").capitalize() if title is None else title
        lines += ["", f"{shown[: len(shown) - len(shown.lstrip())]}**{title}**", ""] if title.strip() else [""]
        body = next((below for below in given[number + 1 :] if below.strip()), "")
        if (inner := len(body) - len(body.lstrip())) > indent:
            depths.append((indent, inner - indent))
    return "\n".join(lines)
