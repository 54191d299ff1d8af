"""Markdown, reStructuredText and plain text: where their headings are, and what should not be cut."""

from __future__ import annotations

import itertools
import re

from markdown_it import MarkdownIt

from retrieval.documents.extraction.decoding import decode
from retrieval.documents.extraction.restructured import has_markup, measure_heading, to_markdown
from retrieval.media_types import RST
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    Section,
    Span,
    find_line_starts,
    plain_title,
)

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?\n)??\1[ \t]*(?:\n|\Z)", re.S)
_ENTRY = re.compile(r"^([A-Za-z_][\w-]*+)[ \t]*+[:=][ \t]*+(\S.*)$", re.M)
_BLOCKS = frozenset({"fence", "code_block", "table_open", "html_block"})


def extract_markdown(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    text = decode(data, filename)
    metadata, body_start = parse_front_matter(text)
    sections, protected = parse_structure(text, body_start)
    if body_start:
        protected = [Span(0, len(text[:body_start].rstrip())), *protected]
    title = metadata.get("title") or find_title(sections)
    return ExtractedText(text, title=title, sections=sections, protected=protected)


def with_structure(text: str, title: str = "", media_type: str = "") -> ExtractedText:
    """Markdown ``text`` with its headings and the blocks to keep whole; its headings give the title it lacks."""
    sections, protected = parse_structure(text)
    return ExtractedText(text, media_type, title or find_title(sections), sections, protected=protected)


def parse_front_matter(text: str) -> tuple[dict[str, str], int]:
    """The top-level ``key: value`` lines of a YAML or TOML block at the start, and where the text proper begins.

    Nested values, lists and multi-line strings are left out: reading them asks for a YAML parser, and no one needs
    them.
    """
    match = _FRONT_MATTER.match(text)
    if not match or not (match[2] or "").strip():
        return {}, 0
    metadata = {}
    for key, value in _ENTRY.findall(match[2]):
        value = value.rstrip(" \t")
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        metadata[key.lower()] = value[1:-1] if quoted else value
    return metadata, match.end()


def parse_structure(text: str, body_start: int = 0) -> tuple[list[Section], list[Span]]:
    """The headings and the blocks to keep whole of Markdown ``text``, read from ``body_start`` on."""
    parser = MarkdownIt("commonmark").enable("table")
    # Only blocks are asked for: without the inline pass parsing is twice as fast.
    parser.core.ruler.disable(["inline", "text_join"])
    tokens = parser.parse("\n" * text.count("\n", 0, body_start) + text[body_start:])
    starts = find_line_starts(text)
    sections: list[Section] = []
    protected: list[Span] = []
    for at, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        if token.type == "heading_open" and token.level == 0:
            title = plain_title(tokens[at + 1].content)
            if title:
                sections.append(Section(start, int(token.tag[1:]), title))
        elif token.type in _BLOCKS:
            protected.append(Span(start, start + len(text[start:end].rstrip())))
    return sections, protected


def find_title(sections: list[Section]) -> str:
    """The title of the only outermost heading, or of the first when the text starts with it; else empty."""
    if not sections:
        return ""
    top = min(section.level for section in sections)
    outermost = [section for section in sections if section.level == top]
    return outermost[0].title if len(outermost) == 1 or sections[0].level == 1 else ""


_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})[.)]?[ \t]+([^\W\d_].{1,78})")
_SMALL = re.compile("[a-z]")
_CAPITALS = re.compile("[A-Z]{3}")


def extract_plain(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    text = decode(data, filename)
    sections = find_underlined(text)
    if media_type == RST or (sections and has_markup(text)):
        return with_structure(to_markdown(text), media_type=RST)
    sections = sections or find_headings(text)
    # In text without markup only a heading that opens the text can be trusted to name all of it.
    is_named = sections and not text[: sections[0].start].strip() and not sections[0].title[0].isdigit()
    return ExtractedText(text, title=find_title(sections) if is_named else "", sections=sections)


def find_underlined(text: str) -> list[Section]:
    """The underlined headings; levels follow the order in which the styles of adornment first occur."""
    starts = find_line_starts(text)
    lines = [text[start:end].rstrip() for start, end in itertools.pairwise(starts)]
    sections: list[Section] = []
    styles: list[tuple[str, bool]] = []
    for at in range(len(lines)):
        if height := measure_heading(lines, at):
            style = (lines[at + height - 1][0], height == 3)
            if style not in styles:
                styles.append(style)
            if title := plain_title(lines[at + height - 2]):
                sections.append(Section(starts[at], styles.index(style) + 1, title))
    return sections


def find_headings(text: str) -> list[Section]:
    """Lines that stand as headings in text without markup; empty unless the evidence agrees with itself.

    A heading stands alone between blank lines. Numbered ones must count up from 1 without a gap at the outermost level,
    capitals must occur at least twice, two blank lines before a single line at least three times. One kind is taken,
    the first that holds.
    """
    starts = find_line_starts(text)
    lines = [text[start:end].strip() for start, end in itertools.pairwise(starts)]
    alone = [
        (starts[at], line)
        for at, line in enumerate(lines)
        if 2 < len(line) <= 100
        and (at == 0 or not lines[at - 1])
        and (at + 1 == len(lines) or not lines[at + 1])
        and line[-1] not in ".,;"
    ]
    capitals = [
        (start, line)
        for start, line in alone
        if len(line) <= 60 and _CAPITALS.search(line) and not _SMALL.search(line) and "|" not in line
    ]
    spaced = [
        (start, line)
        for start, line in alone
        if text.endswith("\n\n\n", 0, start) and line[0].isalnum() and line[-1] != ":"
    ]
    found = capitals if len(capitals) >= 2 else spaced if len(spaced) >= 3 else []
    return _find_numbered(alone) or [Section(start, 1, plain_title(line)) for start, line in found]


def _find_numbered(alone: list[tuple[int, str]]) -> list[Section]:
    found = [(start, match) for start, line in alone if (match := _NUMBERED.fullmatch(line))]
    outermost = [int(match[1]) for _, match in found if "." not in match[1]]
    if len(outermost) < 2 or outermost != list(range(1, len(outermost) + 1)):
        return []
    return [Section(start, match[1].count(".") + 1, plain_title(match[0])) for start, match in found]
