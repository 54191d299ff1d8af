"""Find the headings of Markdown, and the blocks that should not be split."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from retrieval.documents.extraction.decoding import decode
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    Section,
    Span,
    find_line_starts,
    strip_title,
)

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?\n)??\1[ \t]*(?:\n|\Z)", re.S)
# A value is on the line of its key, or on the indented lines below, after ">" or "|".
_ENTRY = re.compile(r"^([A-Za-z_][\w-]*+)[ \t]*+[:=][ \t]*+(?:[>|][+-]?[ \t]*+\n((?:[ \t]++\S.*+\n)++)|(\S.*)$)", re.M)
_BLOCKS = frozenset({"fence", "code_block", "table_open", "html_block"})


def extract_markdown(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    text = decode(data, filename)
    metadata, body_start = parse_front_matter(text)
    sections, protected = parse_structure(text, body_start)
    if body_start:
        protected = [Span(0, len(text[:body_start].rstrip())), *protected]
    title = metadata.get("title") or find_title(sections)
    return ExtractedText(text, title=title, sections=sections, protected=protected)


def build_markdown_text(text: str, title: str = "", media_type: str = "") -> ExtractedText:
    sections, protected = parse_structure(text)
    return ExtractedText(text, media_type, title or find_title(sections), sections, protected=protected)


def parse_front_matter(text: str) -> tuple[dict[str, str], int]:
    """Return the ``key: value`` lines of front matter, and the offset of the text after them.

    Nested values are left out. The lines of a value are joined.
    """
    match = _FRONT_MATTER.match(text)
    if not match or not (match[2] or "").strip():
        return {}, 0
    metadata = {}
    for key, lines, value in _ENTRY.findall(match[2]):
        value = " ".join(lines.split()) or value.rstrip(" \t")
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        metadata[key.lower()] = value[1:-1] if quoted else value
    return metadata, match.end()


def parse_structure(text: str, body_start: int = 0) -> tuple[list[Section], list[Span]]:
    """Return the headings of Markdown ``text`` after ``body_start``, and the blocks that a passage must not split."""
    parser = MarkdownIt("commonmark").enable("table")
    # The parser's inline pass would double the time.
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
            title = strip_title(tokens[at + 1].content)
            if title:
                sections.append(Section(start, int(token.tag[1:]), title))
        elif token.type in _BLOCKS:
            protected.append(Span(start, start + len(text[start:end].rstrip())))
    return sections, protected


def find_title(sections: list[Section]) -> str:
    """Return the title: the first heading if its level is 1, or the only heading of the highest level; or ""."""
    if not sections:
        return ""
    top = min(section.level for section in sections)
    outermost = [section for section in sections if section.level == top]
    return outermost[0].title if len(outermost) == 1 or sections[0].level == 1 else ""
