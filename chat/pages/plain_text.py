from __future__ import annotations

import re

from chat.pages.records import format_records
from retrieval.text.block_items import read_cells
from retrieval.text.markup import convert_notes, strip_markup

_ROW = re.compile(r"[ \t]*+\|(?![-:| \t]+$)[^\n]*\|[ \t]*+")
_SIGNS = (
    (re.compile(r"^[ \t]*+(?:```.*|(?=(?:[ \t:|]|-(?!-))*--)[ \t:|-]*+)$", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*+\|[ \t]*+|(?<![ \t])[ \t]++\|[ \t]*+$|\|[ \t]*+$", re.MULTILINE), ""),
    (re.compile(r"(?<![ \t])[ \t]++\|[ \t]++"), " · "),
    (re.compile(r"(\*\*|`)(?=\S)([^\n]{1,200}?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
)


def convert_to_plain_text(text: str) -> str:
    lines = strip_markup(convert_notes(text), all_links=True).split("\n")
    rows = (" · ".join(filter(None, read_cells(line))) if is_table_row(line) else line for line in lines)
    text = format_records("\n".join(rows))
    for pattern, replacement in _SIGNS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def is_table_row(line: str) -> bool:
    return _ROW.fullmatch(line) is not None
