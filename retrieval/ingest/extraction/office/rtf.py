"""RTF as Markdown: headings by their outline level, lists by their marks, and tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from striprtf.striprtf import rtf_to_text

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.lines import derive_title, plain_title
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits
from retrieval.ingest.extraction.writer import MarkdownWriter

# striprtf gives words alone: what it drops is put among the words, in characters that no text has.
_FIRST_HEADING, _FIRST_LEVEL = 0xE000, 0xE010
_strip: Callable[..., str] = rtf_to_text
_OUTLINE = re.compile(r"\\outlinelevel([0-8])(?!\d)")
# A style that is one of headings, in the style sheet, and a paragraph of a style.
_STYLE = re.compile(r"\{\\s(\d{1,4})(?!\d)([^{}]*)\}")
_HEADING_NAME = re.compile(r"(?:heading|kop|titre) ?([1-9]);$", re.I)
_STYLED = re.compile(r"\\s(\d{1,4})(?!\d)")
_LIST_LEVEL = re.compile(r"\\ilvl([0-8])(?!\d)")
_HEADING = re.compile("([\ue000-\ue008])\\??")
_LEVEL = re.compile("([\ue010-\ue018])\\??")
_ITEM = re.compile(r"\s*(?:(?P<bullet>[•·▪◦o–\-\uf0b7\uf0a7])|\(?(?:\d{1,3}|[a-z])[.)])\t(?P<words>.*)")
_TITLE = re.compile(r"\{\\title ([^{}\\]{1,300})\}")


def extract_rtf(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    source = data.decode("latin-1")
    title = _TITLE.search(source)
    if not source.rstrip("\0 \r\n").endswith("}"):
        raise DocumentRejected(f"{filename} is damaged, its end is missing: save it again in its program.")
    levels = dict(_read_heading_styles(source))
    source = _OUTLINE.sub(lambda match: f"{match[0]}\\u{_FIRST_HEADING + int(match[1])}?", source)
    source = _LIST_LEVEL.sub(lambda match: f"{match[0]}\\u{_FIRST_LEVEL + int(match[1])}?", source)
    source = _STYLED.sub(
        lambda match: f"{match[0]}\\u{_FIRST_HEADING + levels[match[1]]}?" if match[1] in levels else match[0], source
    )
    writer = MarkdownWriter(filename, limits)
    rows: list[list[str]] = []
    for line in canonical(_strip(source, errors="replace")).split("\n"):
        headings, level = _HEADING.findall(line), _LEVEL.search(line)
        words = _HEADING.sub("", _LEVEL.sub("", line))
        if words.rstrip().endswith("|"):
            rows.append(words.rstrip()[:-1].split("|"))
            continue
        writer.add_table(rows)
        rows = []
        if headings and words.strip():
            # What the paragraph says comes behind what its style says.
            writer.add_heading(words, ord(headings[-1]) - _FIRST_HEADING + 1)
        elif item := _ITEM.fullmatch(words):
            depth = ord(level[1]) - _FIRST_LEVEL if level else 0
            writer.add_item(item["words"], depth, is_numbered=item["bullet"] is None)
        else:
            writer.add_paragraph(words)
    writer.add_table(rows)
    heading_1 = next((section.title for section in writer.sections if section.level == 1), "")
    return writer.finish(
        media_type=media_type,
        title=plain_title(canonical(title[1])) if title else heading_1 or derive_title(filename),
    )


def _read_heading_styles(source: str) -> Iterator[tuple[str, int]]:
    """The numbers of the styles of headings with their levels, from 0."""
    for style in _STYLE.finditer(source):
        if level := _OUTLINE.search(style[2]):
            yield style[1], int(level[1])
        elif named := _HEADING_NAME.search(style[2]):
            yield style[1], int(named[1]) - 1
