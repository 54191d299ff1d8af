"""Convert markup and older office formats to HTML with the library xberg, and read it like a web page.

Only this module imports xberg (see ADR 25).
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import xberg

from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.html import convert_html, parse_html
from retrieval.documents.extraction.markdown import build_markdown_text
from retrieval.exceptions import DocumentRejected
from retrieval.media_types import ASCIIDOC, LATEX, NOTEBOOK, ORG, RTF
from retrieval.text.extracted import ExtractedText, ExtractionLimits, LeftOutParts, describe_left_out_parts, strip_title

_TEXTS = frozenset({ASCIIDOC, LATEX, ORG})
# Replacements for markup that xberg does not understand.
_PLAINER = {
    LATEX: (
        # LaTeX: comments, spaces of fixed width, fractions.
        (re.compile(r"(\\begin\{(verbatim|lstlisting|minted)\}.{0,5000}?\\end\{\2\})|(?<!\\)%[^\n]*", re.S), r"\1"),
        (re.compile(r"(?<!\\)(?:\\[,;:!]|~)"), " "),
        (re.compile(r"\\begin\{comment\}.{0,5000}?\\end\{comment\}", re.S), ""),
        (re.compile(r"\\textcolor\{[^{}]*\}\{([^{}]*)\}"), r"\1"),
        (re.compile(r"\\(?:SI|qty)\{([^{}]*)\}\{([^{}]*)\}"), r"\1 \2"),
        (re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}"), r"(\1)/(\2)"),
        (re.compile(r"\\(?:item(?![a-z])|end\{(?:itemize|enumerate|description)\})"), r"\n\g<0>"),
    ),
    ASCIIDOC: (
        (re.compile(r"^\.([^\s.][^\n]*)\n(?=[\[|=\-.*_+])", re.M), r"\1\n\n"),
        (re.compile(r"footnote:\[([^\[\]]*)\]"), r" (\1)"),
        (re.compile(r"xref:[^\s\[\]]{0,200}\[([^\[\]]+)\]"), r"\1"),
        (re.compile(r"<<[^\s<>,]{1,200},\s*([^<>\n]{1,200})>>"), r"\1"),
        (re.compile(r"\b(?:kbd|btn):\[([^\[\]\n]{1,80})\]"), r"\1"),
    ),
    ORG: (
        (re.compile(r"^[ \t]*#\+begin_comment\b.{0,5000}?#\+end_comment", re.I | re.M | re.S), ""),
        (re.compile(r"(#\+begin_(\w+)\b.{0,5000}?#\+end_\2)|^[ \t]*# [^\n]*", re.I | re.M | re.S), r"\1"),
        (re.compile(r"^(\*+ )(TODO|NEXT|WAITING|DONE|CANCELLED)(?= )", re.M), r"\1\2:"),
    ),
}
# Accents of TeX, such as \\'e and \\c{c}, with the combining characters of Unicode.
_TEX_ACCENT = re.compile(r"(?<!\\)\\(['`^\"~=.]|[cvHurk](?=\{))(?:\{\\?([A-Za-z])\}|([A-Za-z]))")
_TEX_ACCENTS = dict(
    zip("'`^\"~=.cvHurk", "\u0301\u0300\u0302\u0308\u0303\u0304\u0307\u0327\u030c\u030b\u0306\u030a\u0328", strict=True)
)
_TEX_WORD = re.compile(r"\\(?:re)?newcommand\*?\{?\\([a-zA-Z]+)\}?\{([^{}\\]*)\}")
_INCLUDED = re.compile(r"^[ \t]*(?:\\(?:input|include|subfile)\{([^{}]+)\}|include::([^\s\[\]]+)\[)", re.M)
_COLOUR = re.compile(rb"\\u001b\[[\d;]*m")
# RTF patterns: hidden, deleted and struck-out words; comments; list numbers; superscripts and subscripts.
_RTF_CONTROLS = r"(?:\\[a-z]{1,20}+-?\d{0,9}+ ?){0,12}+"
_RTF_HIDDEN = re.compile(rf"\\(?:v|deleted|strike)(?![a-z\d]){_RTF_CONTROLS} ?([^{{}}\\]*)")
_RTF_COMMENT = re.compile(r"\{(?:\\\*)?\\annotation(?![a-z])")
_COUNTED_ITEM = re.compile(r"^( *)- (?=\d{1,9}[.)] )", re.M)
_RTF_PLAINER = (
    # xberg would write `~` for a fixed space and `_` for a fixed hyphen.
    (re.compile(r"(?<!\\)((?:\\\\)*+)\\~"), r"\1{ }"),
    (re.compile(r"(?<!\\)((?:\\\\)*+)\\_"), r"\1\\'2d"),
    (re.compile(r"\\(?:deleted|strike)(?![a-z\d])"), r"\\v"),
    (_RTF_COMMENT, r"{\\*\\unread"),
    # xberg drops a list number that comes before the RTF control words of its paragraph. So the number is moved behind
    # these words, and U+2060 is added before the number.
    (
        re.compile(
            rf"\{{(?:\\\*)?\\(?:listtext|pntext)(?![a-z]){_RTF_CONTROLS} ?(\(?[\w.]{{1,12}}+[.)]?)\\tab ?\}}"
            rf"((?:{_RTF_CONTROLS}){{0,5}})"
        ),
        r"\2 \\u8288?\1 ",
    ),
    (re.compile(rf"(\\super(?![a-z\d]) ?{_RTF_CONTROLS})(?=\d)"), r"\1^"),
    (re.compile(rf"(\d\}}?\{{?{_RTF_CONTROLS}\\sub(?![a-z\d]) ?{_RTF_CONTROLS})(?=\d)"), r"\1_"),
)
# In RTF, a style that is named a heading but has no outline level.
_HEADING_STYLE = re.compile(r"\{\\s(\d{1,4})(?!\d)(?:(?!\\outlinelevel)[^{}]){0,300}?heading ([1-9]);\}", re.I)
_STYLE_CONTROL = re.compile(r"(?<!\\)\\s(\d{1,4})(?!\d) ?")
_LOOSE_NOTE = re.compile(r"\[\^\w{1,10}\]:\s*")
_CONFIG = xberg.ExtractionConfig(
    output_format="html",
    disable_ocr=True,
    use_cache=False,
    enable_quality_processing=False,
    concurrency=xberg.ConcurrencyConfig(max_threads=1),
)


def extract_by_engine(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    left_out: tuple[LeftOutParts, ...] = ()
    if media_type in _TEXTS:
        source = decode(data, filename)
        left_out = describe_left_out_parts("linked", ["".join(names) for names in _INCLUDED.findall(source)])
        data = _prepare_text(source, media_type).encode()
    elif media_type == NOTEBOOK:
        data = _prepare_notebook(data, filename)
    elif media_type == RTF:
        source = data.decode("latin-1")
        hidden = sum(len(words.split()) for words in _RTF_HIDDEN.findall(source))
        left_out = describe_left_out_parts("hidden", (), hidden) + describe_left_out_parts(
            "comments", (), len(_RTF_COMMENT.findall(source))
        )
        data = _prepare_rich_text(source, filename)
    document = convert_to_html(data, filename, media_type)
    root = parse_html(make_canonical_text(document.content), filename)
    if root is None:
        return ExtractedText("")
    line = _take_title_line(root)
    title = strip_title(make_canonical_text(document.metadata.title or line))
    _inline_footnotes(root)
    _write_alert_labels(root)
    text = _COUNTED_ITEM.sub(r"\1", f"{convert_html(root)}\n") if media_type == RTF else f"{convert_html(root)}\n"
    read = replace(build_markdown_text(text, title), left_out=left_out)
    is_titled = not title or any(section.title.casefold() == title.casefold() for section in read.sections)
    if is_titled or media_type not in _TEXTS:
        return read
    return replace(build_markdown_text(f"# {title}\n\n{read.text}", title), left_out=left_out)


def _prepare_text(source: str, media_type: str) -> str:
    for pattern, plainer in _PLAINER[media_type]:
        source = pattern.sub(plainer, source)
    if media_type != LATEX:
        return source
    source = _TEX_ACCENT.sub(lambda sign: f"{sign[2] or sign[3]}{_TEX_ACCENTS[sign[1]]}", source)
    source = make_canonical_text(source)
    # Macros that the document defines are replaced by their text.
    named = dict(_TEX_WORD.findall(source))
    source = re.sub(r"\\([a-zA-Z]+)(?:\{\})?", lambda word: named.get(word[1], word[0]), _TEX_WORD.sub("", source))
    # A chapter that another file includes has no document environment.
    is_whole = "\\begin{document}" in source
    return source if is_whole else f"\\documentclass{{book}}\n\\begin{{document}}\n{source}\n\\end{{document}}\n"


def _prepare_notebook(data: bytes, filename: str) -> bytes:
    try:
        notebook = json.loads(decode(data, filename))
        sheets = notebook.get("worksheets", ())
        cells = [cell for sheet in sheets for cell in sheet.get("cells", ())]
        for cell in cells:
            cell.setdefault("source", cell.get("input", ""))
            if cell.get("cell_type") == "heading":
                cell["cell_type"] = "markdown"
                cell["source"] = f"{'#' * int(cell.get('level', 1))} {''.join(cell['source'])}"
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DocumentRejected(f"{filename} is no notebook: check the file and upload it again.") from error
    data = json.dumps({"metadata": {}, "nbformat": 4, "nbformat_minor": 0, "cells": cells}).encode() if sheets else data
    return _COLOUR.sub(b"", data)


def _prepare_rich_text(source: str, filename: str) -> bytes:
    if not source.rstrip("\0 \r\n").endswith("}"):
        raise DocumentRejected(f"{filename} is damaged, its end is missing: save it again in its program.")
    for pattern, plainer in _RTF_PLAINER:
        source = pattern.sub(plainer, source)
    levels = dict(_HEADING_STYLE.findall(source))

    def add_outline_level(control: re.Match[str]) -> str:
        level = levels.get(control[1])
        return f"{control[0].rstrip()}\\outlinelevel{int(level) - 1} " if level else control[0]

    return _STYLE_CONTROL.sub(add_outline_level, source).encode("latin-1")


def _take_title_line(root: Any) -> str:
    for label in root.xpath("//p/strong[1][not(preceding-sibling::*)]")[:5]:
        if (label.text or "").casefold() == "title" and (label.tail or "").startswith(":"):
            label.getparent().getparent().remove(label.getparent())
            return str(label.tail[1:].strip())
    return ""


def _write_alert_labels(root: Any) -> None:
    for label in root.xpath("//p[@class='markdown-alert-title']"):
        words = label.getnext()
        if words is not None and (words.text or "").casefold() == label.text.casefold():
            words.getparent().remove(words)
            words = label.getparent().getnext()
        if words is not None:
            words.text = f"{label.text}: {words.text or ''}"
            label.getparent().remove(label)


def _inline_footnotes(root: Any) -> None:
    notes = {}
    for section in root.xpath("//section[@class='footnotes']"):
        for item in section.iter("li"):
            for back in item.xpath(".//a[@class='footnote-backref']"):
                back.getparent().remove(back)
            notes[item.get("id")] = " ".join("".join(item.itertext()).split())
        section.getparent().remove(section)
    for mark in root.xpath("//sup[@class='footnote-ref']"):
        target = next((link.get("href", "")[1:] for link in mark.iter("a")), "")
        mark.tag, mark.text = "span", f" ({notes[target]})" if notes.get(target) else ""
        for child in list(mark):
            mark.remove(child)
    for paragraph in root.iter("p"):
        if match := _LOOSE_NOTE.match(paragraph.text or ""):
            paragraph.text = f"({(paragraph.text or '')[match.end() :].strip()})"


def convert_to_html(data: bytes, filename: str, media_type: str) -> Any:
    """Return the file as an HTML document, made by xberg. Raises: DocumentRejected if xberg cannot read the file."""
    file = xberg.ExtractInput(
        kind=xberg.ExtractInputKind.BYTES, bytes=data, mime_type=media_type or None, filename=filename
    )

    async def extract() -> Any:
        return await xberg.extract(file, _CONFIG)

    try:
        result = asyncio.run(extract())
    except (xberg.XbergError, RuntimeError) as error:
        raise _build_damaged_file_error(filename, str(error)) from error
    if not result.results:
        raise _build_damaged_file_error(filename, "; ".join(map(str, result.errors)))
    return result.results[0]


def _build_damaged_file_error(filename: str, reason: str) -> DocumentRejected:
    said = " ".join(reason.split())[:150]
    return DocumentRejected(
        f"{filename} is damaged or protected by a password ({said}): save it again in its program, without a password."
    )
