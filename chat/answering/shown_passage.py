"""Excerpts as the text of an answer: Markdown, with a marker behind each stretch of a document. PURE."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from textwrap import dedent

from chat.answering.citations import quote_for_answer
from chat.answering.code_spans import find_code
from chat.answering.passage import Excerpt, Span
from chat.answering.units import QuotableUnit, blocks_of
from chat.types import ContextSource
from retrieval.text.block import BlockKind
from retrieval.text.block_items import read_cells

LONGEST_MARKER = len(" … [999]")
# What says that a block is longer than what is shown.
GOES_ON = "…"
# Headings inside an excerpt are shown as lines in bold type: they are no headings of the answer.
_HTML_TABLE = re.compile(r"(?:<table\b|<tr\b).*?(?:</table>|\Z)", re.DOTALL | re.IGNORECASE)
_ROW = re.compile(r"\|.*\|")
_RULE = re.compile(r"[ :|-]+")
# Of Jekyll, Liquid, Hugo and ERB: what they would write there is not known.
_TEMPLATE_TAG = re.compile(r"\{%[^{}\n]{0,300}%\}|\{\{[^{}\n]{0,300}\}\}|<%[^<>\n]{0,300}%>")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++([^\n]*+)$", re.MULTILINE)


def render(excerpt: Excerpt) -> str:
    """The excerpt with its markers: behind each of its stretches, inside the last cell of a table, below code."""
    pieces = list(_stretches(excerpt))
    if excerpt.table_head:
        pieces[0] = f"{quote_for_answer(excerpt.table_head)}\n{pieces[0]}"
    else:
        pieces = [_without_bars(piece) for piece in pieces]
    if excerpt.heading:
        pieces[0] = f"**{quote_for_answer(excerpt.heading.replace('*', ''))}**\n\n{pieces[0]}"
    marker = f"[{excerpt.source.marker}]"
    if excerpt.goes_on:
        pieces[-1] = _with_ellipsis(pieces[-1].rstrip())
    return "\n\n".join(_with_marker(piece, marker) for piece in pieces)


def find_marked(shown: str, unit: QuotableUnit) -> Span | None:
    """Where a unit stands in the excerpt as it is shown; None where it is all of it, or is written otherwise there."""
    words = quote_for_answer(unit.text.strip())
    at = shown.find(words)
    is_all = len(shown) - len(words) <= LONGEST_MARKER
    return None if at < 0 or is_all else (at, at + len(words))


def _stretches(excerpt: Excerpt) -> Iterator[str]:
    """The text of the spans, those that only white space and headings part as one."""
    content, offset = excerpt.source.block.content, excerpt.source.block.start
    stretches = [excerpt.spans[0]]
    for start, end in excerpt.spans[1:]:
        if content[stretches[-1][1] - offset : start - offset].strip():
            stretches.append((start, end))
        else:
            stretches[-1] = stretches[-1][0], end
    unfenced = list(_unfenced_code(excerpt.source))
    for start, end in stretches:
        pieces = []
        for first, last, is_code in _parted(start, end, unfenced):
            text = content[first - offset : last - offset]
            if text.strip():
                pieces.append(_fenced(text) if is_code else _prose(text))
        yield "\n\n".join(pieces)


def _unfenced_code(source: ContextSource) -> Iterator[Span]:
    """Code of the document that no fence sets off: a file of source code, or what is code by its indentation."""
    offset = source.block.start
    fences = [(code.start + offset, code.end + offset) for code in find_code(source.block.content) if code.fence]
    for block in blocks_of(source):
        if block.kind is BlockKind.CODE:
            start = block.start if block.lead_in is None else block.lead_in[1]
            if not any(first < block.end and start < last for first, last in fences):
                yield start, block.end


def _parted(start: int, end: int, codes: Sequence[Span]) -> Iterator[tuple[int, int, bool]]:
    """What lies between ``start`` and ``end``, in order; the third says whether it is code."""
    for first, last in codes:
        first, last = max(first, start), min(last, end)
        if first < last:
            yield start, first, False
            yield first, last, True
            start = last
    yield start, end, False


def _fenced(code: str) -> str:
    longest = max((len(ticks) for ticks in re.findall("`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    lines = dedent(code.strip("\n").rstrip())
    return f"{fence}\n{lines}\n{fence}"


def _prose(text: str) -> str:
    """Text that holds no code but in fences, as Markdown; what is in fences stays as it is."""
    text = _dedented(text)
    pieces, position = [], 0
    for code in [*(code for code in find_code(text) if code.fence), None]:
        upto = len(text) if code is None else code.start
        prose = _outside_code_spans(text[position:upto], lambda words: _TEMPLATE_TAG.sub("", words))
        pieces.append(_HEADING.sub(_as_bold, _with_markdown_tables(prose)))
        if code is not None:
            pieces.append(text[code.start : code.end])
            position = code.end
    return quote_for_answer("".join(pieces))


def _outside_code_spans(text: str, rewrite: Callable[[str], str]) -> str:
    pieces, position = [], 0
    for code in find_code(text):
        pieces += [rewrite(text[position : code.start]), text[code.start : code.end]]
        position = code.end
    return "".join([*pieces, rewrite(text[position:])])


def _with_markdown_tables(text: str) -> str:
    """The text, its tables of HTML written as Markdown."""
    return _HTML_TABLE.sub(lambda match: "\n".join(_rows_as_markdown(match.group())), text)


def _rows_as_markdown(table: str) -> Iterator[str]:
    rows = re.findall(r"<tr\b.*?(?=<tr\b|\Z)", table, re.DOTALL | re.IGNORECASE)
    for number, row in enumerate(rows):
        cells = read_cells(row)
        yield f"| {' | '.join(cells)} |"
        if number == 0 and table.startswith("<table"):
            yield f"|{'---|' * len(cells)}"


def _is_rule(line: str) -> bool:
    return line.startswith("|") and "-" in line and bool(_RULE.fullmatch(line))


def _without_bars(text: str) -> str:
    """The text, rows of a table that stand in it without their head as "**first cell** – second – third": Markdown
    would show their bars."""
    lines: list[str] = []
    in_code = is_headed = False
    given = text.split("\n")
    for number, line in enumerate(given):
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        is_row = not in_code and bool(_ROW.fullmatch(line.strip()))
        if is_row and not is_headed:
            is_headed = number + 1 < len(given) and _is_rule(given[number + 1].strip())
        if not is_row:
            is_headed = False
        if is_row and not is_headed:
            if cells := [cell for cell in read_cells(line) if cell]:
                lines += [" – ".join([f"**{cells[0].strip('*')}**", *cells[1:]]), ""]
        else:
            lines.append(line)
    return "\n".join(lines).rstrip("\n")


def _as_bold(match: re.Match[str]) -> str:
    heading = match[1].rstrip(" \t#").replace("*", "")
    return f"**{heading}**" if heading else ""


def _dedented(text: str) -> str:
    """Text that was cut out of an indented block: its lines lose the indentation that all but the first have."""
    first, newline, rest = text.partition("\n")
    indents = [len(line) - len(line.lstrip()) for line in rest.split("\n") if line.strip()]
    depth = min(indents, default=0)
    if not depth or first[:1].isspace():
        return text
    return first + newline + "\n".join(line[depth:] if line[:depth].isspace() else line for line in rest.split("\n"))


def _with_ellipsis(text: str) -> str:
    codes = find_code(text)
    if codes and codes[-1].fence and not codes[-1].is_open and codes[-1].end == len(text):
        code, _, fence = text.rpartition("\n")
        return f"{code}\n{GOES_ON}\n{fence}"
    return f"{text} {GOES_ON}"


def _with_marker(text: str, marker: str) -> str:
    codes = find_code(text)
    if codes and codes[-1].is_open:
        # Code that is too long is cut in its middle.
        text = f"{text}\n\n{codes[-1].fence}"
    last_line = text.rsplit("\n", 1)[-1].strip()
    if len(last_line) > 1 and last_line[0] == "|" == last_line[-1] and last_line[-2] != "\\":
        return f"{text.rstrip()[:-1].rstrip()} {marker} |"
    if last_line.startswith(("|", "```", "~~~")) or (codes and codes[-1].fence and codes[-1].end >= len(text.rstrip())):
        return f"{text}\n\n{marker}"
    return f"{text} {marker}"
