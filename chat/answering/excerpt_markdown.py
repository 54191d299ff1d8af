"""Write an excerpt of a document as Markdown, with a marker (``[1]``) after each contiguous part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from textwrap import dedent

from chat.answering.checking.citations import escape_bracketed_numbers, find_code_spans
from chat.answering.excerpts import Excerpt, Span
from chat.answering.units import QuotableUnit, convert_html_row_to_markdown, list_blocks
from chat.types import ContextSource
from retrieval.text.block import BlockKind
from retrieval.text.block_items import read_cells
from retrieval.text.markup import convert_notes, opens_mkdocs_block, strip_markup

LONGEST_MARKER = len(" … [999]")


GOES_ON = "…"


# These patterns find markup to rewrite. Headings become bold, because they must not look like headings of the answer.
_HTML_TABLE = re.compile(r"(?:<table\b|<tr\b).*?(?:</table>|\Z)", re.DOTALL | re.IGNORECASE)


_ROW = re.compile(r"\|.*\|")


_RULE = re.compile(r"\|(?=[ :|]*+-)[ :|-]*+")


# Tags of Jekyll, Liquid, Hugo and ERB templates are removed, because their output is unknown.
_TEMPLATE_TAG = re.compile(r"\{%[^{}\n]{0,300}%\}|\{\{[^{}\n]{0,300}\}\}|<%[^<>\n]{0,300}%>")


_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n){2,}+")


_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++([^\n]*+)$", re.MULTILINE)


def render_excerpt(excerpt: Excerpt, *, is_cited: bool = True) -> str:
    """Return the excerpt as Markdown. If ``is_cited``, each contiguous part ends with the source's marker (``[1]``)."""
    pieces = list(_render_spans(excerpt))
    if excerpt.table_head:
        pieces[0] = f"{escape_bracketed_numbers(excerpt.table_head)}\n{pieces[0]}"
    else:
        pieces = [_write_headless_rows_as_text(piece) for piece in pieces]
    if excerpt.heading:
        pieces[0] = f"**{escape_bracketed_numbers(excerpt.heading.replace('*', ''))}**\n\n{pieces[0]}"
    if excerpt.goes_on:
        pieces[-1] = _add_ellipsis(pieces[-1].rstrip())
    marker = f"[{excerpt.source.marker}]" if is_cited else ""
    return "\n\n".join(_add_marker(piece, marker) for piece in pieces)


def find_unit_in_markdown(shown: str, unit: QuotableUnit) -> Span | None:
    """Return where ``shown``, an excerpt as Markdown, contains the text of ``unit``, to highlight it; else None."""
    words = _render_prose(unit.text.strip())
    at = shown.find(words)
    is_all = len(shown) - len(words) <= LONGEST_MARKER
    return None if at < 0 or is_all else (at, at + len(words))


def _render_spans(excerpt: Excerpt) -> Iterator[str]:
    content, offset = excerpt.source.block.content, excerpt.source.block.start
    stretches = [(_find_note_start(content, excerpt.spans[0][0] - offset) + offset, excerpt.spans[0][1])]
    for start, end in excerpt.spans[1:]:
        if _has_visible_text(content[stretches[-1][1] - offset : start - offset]):
            stretches.append((start, end))
        else:
            stretches[-1] = stretches[-1][0], end
    unfenced = list(_find_unfenced_code(excerpt.source))
    for start, end in stretches:
        pieces = []
        for first, last, is_code in _split_at_code(start, end, unfenced):
            text = content[first - offset : last - offset]
            if text.strip():
                pieces.append(_fence_code(text) if is_code else _render_prose(text))
        yield "\n\n".join(pieces)


def _find_note_start(content: str, start: int) -> int:
    before = content[:start].rstrip()
    begin = before.rfind("\n") + 1
    return begin if opens_mkdocs_block(before[begin:]) else start


def _has_visible_text(between: str) -> bool:
    lines = (line for line in between.split("\n") if not opens_mkdocs_block(line))
    return bool(strip_markup("\n".join(lines)).strip())


def _find_unfenced_code(source: ContextSource) -> Iterator[Span]:
    offset = source.block.start
    fences = [(code.start + offset, code.end + offset) for code in find_code_spans(source.block.content) if code.fence]
    for block in list_blocks(source):
        if block.kind is BlockKind.CODE:
            start = block.start if block.lead_in is None else block.lead_in[1]
            if not any(first < block.end and start < last for first, last in fences):
                yield start, block.end


def _split_at_code(start: int, end: int, codes: Sequence[Span]) -> Iterator[tuple[int, int, bool]]:
    for first, last in codes:
        first, last = max(first, start), min(last, end)
        if first < last:
            yield start, first, False
            yield first, last, True
            start = last
    yield start, end, False


def _fence_code(code: str) -> str:
    longest = max((len(ticks) for ticks in re.findall("`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    lines = dedent(code.strip("\n").rstrip())
    return f"{fence}\n{lines}\n{fence}"


def _render_prose(text: str) -> str:
    text = convert_notes(_dedent(text))
    pieces, position = [], 0
    for code in [*(code for code in find_code_spans(text) if code.fence), None]:
        upto = len(text) if code is None else code.start
        prose = _rewrite_outside_code(text[position:upto], lambda words: strip_markup(_TEMPLATE_TAG.sub("", words)))
        prose = _HEADING.sub(_make_bold, _HTML_TABLE.sub(_convert_table, prose))
        pieces.append(_BLANK_LINES.sub("\n\n", prose))
        if code is not None:
            pieces.append(text[code.start : code.end])
            position = code.end
    return escape_bracketed_numbers("".join(pieces).lstrip("\n"))


def _rewrite_outside_code(text: str, rewrite: Callable[[str], str]) -> str:
    pieces, position = [], 0
    for code in find_code_spans(text):
        pieces += [rewrite(text[position : code.start]), text[code.start : code.end]]
        position = code.end
    return "".join([*pieces, rewrite(text[position:])])


def _convert_table(match: re.Match[str]) -> str:
    table = match.group()
    rows = re.findall(r"<tr\b.*?(?=<tr\b|\Z)", table, re.DOTALL | re.IGNORECASE)
    return "\n".join(
        convert_html_row_to_markdown(row, is_head=number == 0 and table.startswith("<table"))
        for number, row in enumerate(rows)
    )


def _write_headless_rows_as_text(text: str) -> str:
    """Write table rows without a head as "**first cell** – second – third"; Markdown would show their bars."""
    lines: list[str] = []
    in_code = is_headed = False
    given = text.split("\n")
    for number, line in enumerate(given):
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        is_row = not in_code and bool(_ROW.fullmatch(line.strip()))
        if is_row and not is_headed:
            is_headed = number + 1 < len(given) and bool(_RULE.fullmatch(given[number + 1].strip()))
        if not is_row:
            is_headed = False
        if is_row and not is_headed:
            if cells := [cell for cell in read_cells(line) if cell]:
                lines += [" – ".join([f"**{cells[0].strip('*')}**", *cells[1:]]), ""]
        else:
            lines.append(line)
    return "\n".join(lines).rstrip("\n")


def _make_bold(match: re.Match[str]) -> str:
    heading = match[1].rstrip(" \t#").replace("*", "")
    return f"**{heading}**" if heading else ""


def _dedent(text: str) -> str:
    if depth := len(text) - len(text.lstrip(" ")):
        lines = text.split("\n")
        inside = list(takewhile(lambda line: not line.strip() or not line[:depth].strip(), lines))
        return "\n".join([*(line[depth:] for line in inside), *lines[len(inside) :]])
    first, newline, rest = text.partition("\n")
    indents = [len(line) - len(line.lstrip()) for line in rest.split("\n") if line.strip()]
    depth = min(indents, default=0)
    if not depth:
        return text
    return first + newline + "\n".join(line[depth:] if line[:depth].isspace() else line for line in rest.split("\n"))


def _add_ellipsis(text: str) -> str:
    codes = find_code_spans(text)
    if codes and codes[-1].fence and not codes[-1].is_open and codes[-1].end == len(text):
        code, _, fence = text.rpartition("\n")
        return f"{code}\n{GOES_ON}\n{fence}"
    return f"{text} {GOES_ON}"


def _add_marker(text: str, marker: str) -> str:
    codes = find_code_spans(text)
    if codes and codes[-1].is_open:
        text = f"{text}\n\n{codes[-1].fence}"
    if not marker:
        return text
    last_line = text.rsplit("\n", 1)[-1].strip()
    if len(last_line) > 1 and last_line[0] == "|" == last_line[-1] and last_line[-2] != "\\":
        return f"{text.rstrip()[:-1].rstrip()} {marker} |"
    if last_line.startswith(("|", "```", "~~~")) or (codes and codes[-1].fence and codes[-1].end >= len(text.rstrip())):
        return f"{text}\n\n{marker}"
    return f"{text} {marker}"
