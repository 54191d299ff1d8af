"""RTF as Markdown: headings by their outline level or the name of their style, lists, and tables in their place."""

from __future__ import annotations

import re

from striprtf.striprtf import rtf_to_text

from retrieval.documents.extraction.decoding import canonical
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, plain_title

_TITLE = re.compile(r"\{\\title ([^{}]{1,300})\}")
# A style of headings, in the sheet of styles: its number, and its level from 0, or the level from 1 in its name.
_STYLE = re.compile(r"\{\\s(\d{1,4})(?!\d)[^{}]*?(?:\\outlinelevel([0-8])(?!\d)|heading ([1-9]);\})", re.I)
# What tells of a paragraph that it is a heading or an item. striprtf drops it, so the level, from 0, is put behind it
# among the words, after a character that no text has.
_CONTROL = re.compile(r"(?<!\\)\\(?:s(\d{1,4})|outlinelevel([0-8])|ilvl([0-8]))(?!\d) ?")
_HEADING, _ITEM = "\ue000", "\ue001"
_LEVEL = re.compile(f"([{_HEADING}{_ITEM}])([0-8])")
_LISTED = re.compile(r"\s*(?:(?P<bullet>[•·▪◦o–\-\uf0b7\uf0a7])|\(?(?:\d{1,3}|[a-z])[.)])\t(?P<words>.*)")


def extract_rich_text(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    source = data.decode("latin-1")
    if not source.rstrip("\0 \r\n").endswith("}"):
        raise DocumentRejected(f"{filename} is damaged, its end is missing: save it again in its program.")
    styles = {style: outline or str(int(named) - 1) for style, outline, named in _STYLE.findall(source)}

    def keep_level(control: re.Match[str]) -> str:
        style, outline, item = control.groups()
        heading = outline or styles.get(style)
        return control[0] + (_ITEM + item if item else _HEADING + heading if heading else "")

    writer = MarkdownWriter(filename, limits)
    rows: list[list[str]] = []
    for line in _read_words(_CONTROL.sub(keep_level, source)).split("\n"):
        # What the paragraph says comes behind what its style says.
        levels = {kind: int(level) for kind, level in _LEVEL.findall(line)}
        words = _LEVEL.sub("", line).rstrip()
        if words.endswith("|"):
            rows.append(words[:-1].split("|"))
            continue
        writer.add_table(rows)
        rows = []
        if _HEADING in levels:
            writer.add_heading(words, levels[_HEADING] + 1)
        elif item := _LISTED.fullmatch(words):
            writer.add_item(item["words"], levels.get(_ITEM, 0), is_numbered=item["bullet"] is None)
        else:
            writer.add_paragraph(words)
    writer.add_table(rows)
    title = _TITLE.search(source)
    return writer.finish((plain_title(_read_words(f"{{{title[1]}}}")) if title else "") or writer.first_title)


def _read_words(source: str) -> str:
    return canonical(rtf_to_text(source, errors="replace"))  # type: ignore[no-untyped-call]
