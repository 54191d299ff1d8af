"""Find the headings of plain text and reStructuredText."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from lxml import etree

from retrieval.documents.extraction.archive import parse_xml
from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.markdown import build_markdown_text, find_title
from retrieval.documents.extraction.restructured import has_markup, measure_heading, to_markdown
from retrieval.media_types import RST
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    Section,
    describe_left_out_parts,
    find_line_starts,
    strip_title,
)

_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})[.)]?[ \t]+([^\W\d_].{1,78})")
_SMALL = re.compile("[a-z]")
_ENCODED = re.compile(r"^(?:[A-Za-z0-9+/]{60,}\n){3,}(?:[A-Za-z0-9+/]+={0,2}\n)?|[A-Za-z0-9+/]{300,}={0,2}", re.M)
# Encoded data that XML breaks into indented lines.
_CODE_LINE = "[A-Za-z0-9+/]{60,}+"
_INDENTED_CODE = re.compile(
    rf"(?<![A-Za-z0-9+/]){_CODE_LINE}(?:\s++{_CODE_LINE}){{2,}}+(?:={{1,2}}|\s++[A-Za-z0-9+/]{{1,80}}={{1,2}})?"
)
_CAPITALS = re.compile("[A-Z]{3}")


def extract_plain(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    text, encoded = _ENCODED.subn("", _read_xml(data) or decode(data, filename))
    if encoded:
        return ExtractedText(text, left_out=describe_left_out_parts("encoded", (), encoded))
    sections = find_underlined_headings(text)
    if media_type == RST or (sections and has_markup(text)):
        return build_markdown_text(to_markdown(text), media_type=RST)
    sections = sections or find_unmarked_headings(text)
    is_named = sections and not text[: sections[0].start].strip() and not sections[0].title[0].isdigit()
    return ExtractedText(text, title=find_title(sections) if is_named else "", sections=sections)


def _read_xml(data: bytes) -> str:
    if not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<?xml"):
        return ""
    try:
        root = parse_xml(data.lstrip())
    except etree.XMLSyntaxError:
        return ""
    values = _list_values(root)
    lines = [f"{etree.QName(str(name)).localname}: {str(value).strip()}\n" for name, value in values if value]
    text = make_canonical_text("".join(line for line in lines if not line.endswith(": \n")))
    return _INDENTED_CODE.sub(lambda code: "".join(code[0].split()), text)


def _list_values(root: etree._Element) -> Iterator[tuple[object, str | None]]:
    whole: set[etree._Element] = set()
    for each in root.iter(etree.Element):
        yield from each.items()
        if each.getparent() in whole:
            whole.add(each)
        elif any((child.tail or "").strip() for child in each):
            # Words beside inner elements make one sentence with the words of these elements.
            whole.add(each)
            yield each.tag, " ".join("".join(map(str, each.itertext())).split())
        else:
            yield each.tag, each.text


def find_underlined_headings(text: str) -> list[Section]:
    """Return the underlined headings. The first kind of underline means level 1, the second kind level 2."""
    starts = find_line_starts(text)
    lines = [text[start:end].rstrip() for start, end in itertools.pairwise(starts)]
    sections: list[Section] = []
    styles: list[tuple[str, bool]] = []
    for at in range(len(lines)):
        if height := measure_heading(lines, at):
            style = (lines[at + height - 1][0], height == 3)
            if style not in styles:
                styles.append(style)
            if title := strip_title(lines[at + height - 2]):
                sections.append(Section(starts[at], styles.index(style) + 1, title))
    return sections


def find_unmarked_headings(text: str) -> list[Section]:
    """Return the likely headings of text without markup; none if they are inconsistent.

    Headings are numbered, in capitals, or after two blank lines.
    """
    starts = find_line_starts(text)
    lines = [text[start:end].strip() for start, end in itertools.pairwise(starts)]
    lone_lines = [
        (starts[at], line)
        for at, line in enumerate(lines)
        if 2 < len(line) <= 100
        and (at == 0 or not lines[at - 1])
        and (at + 1 == len(lines) or not lines[at + 1])
        and line[-1] not in ".,;"
    ]
    capitals = [
        (start, line)
        for start, line in lone_lines
        if len(line) <= 60 and _CAPITALS.search(line) and not _SMALL.search(line) and "|" not in line
    ]
    spaced = [
        (start, line)
        for start, line in lone_lines
        if text.endswith("\n\n\n", 0, start) and line[0].isalnum() and line[-1] != ":"
    ]
    found = capitals if len(capitals) >= 2 else spaced if len(spaced) >= 3 else []
    return _find_numbered_headings(lone_lines) or [Section(start, 1, strip_title(line)) for start, line in found]


def _find_numbered_headings(lone_lines: list[tuple[int, str]]) -> list[Section]:
    found = [(start, match) for start, line in lone_lines if (match := _NUMBERED.fullmatch(line))]
    outermost = [int(match[1]) for _, match in found if "." not in match[1]]
    if len(outermost) < 2 or outermost != list(range(1, len(outermost) + 1)):
        return []
    return [Section(start, match[1].count(".") + 1, strip_title(match[0])) for start, match in found]
