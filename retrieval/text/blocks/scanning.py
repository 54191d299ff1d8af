"""One pass over the lines of a text that groups them into drafts of blocks. PURE.

Each line is looked at a fixed number of times, whatever stands in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from retrieval.text.blocks import marks
from retrieval.text.blocks.directives import Directive, read_directive
from retrieval.text.blocks.lines import Line, LineRole, is_page_number
from retrieval.text.blocks.marks import Item
from retrieval.text.blocks.types import BlockKind
from retrieval.text.blocks.walking import Walk

_CODE_INDENT = 4
# Numbered paragraphs this long, of a contract, are no items that are read in one go.
_LONG_LIST = 3_000
_LONG_ITEMS = 600


@dataclass(slots=True)
class BlockDraft:
    """Lines ``first`` to ``last`` of a text as what may become a block, at ``start`` to ``end``.

    ``first_number`` and ``last_number`` are those of the outermost items of a procedure; ``holds_code`` says that code
    stands between its steps, ``is_single`` that there is one item. ``joins_next`` says that what follows explains it,
    as with the name of a function.
    """

    kind: BlockKind
    first: int
    last: int
    start: int
    end: int
    section: int
    first_number: int = 0
    last_number: int = 0
    holds_code: bool = False
    is_single: bool = False
    joins_next: bool = False
    lead_in: tuple[int, int] | None = None


class Scanner(Walk):
    def __init__(self, lines: list[Line], *, is_paged: bool) -> None:
        super().__init__(lines, is_paged=is_paged)
        self._drafts: list[BlockDraft] = []

    def scan(self) -> list[BlockDraft]:
        at = 0
        while at < len(self._lines):
            line = self._lines[at]
            if line.role == LineRole.TEXT:
                if line.indent < self._container:
                    self._container = 0
                at = self._read(at)
            else:
                self._container *= line.role != LineRole.HEADING
                at += 1
        return self._drafts

    def _read(self, at: int) -> int:
        """The line after what begins at line ``at``."""
        body = self._lines[at].body
        if body.startswith("<table") and (table_end := self._find_table_end(at)):
            return self._add(BlockKind.TABLE, at, table_end)
        end = self._skip(at)
        if end > at:
            return end
        if self._is_rst and (directive := read_directive(body)):
            return self._read_directive(at, directive)
        if fence := marks.opens_fence(body):
            return self._add(BlockKind.CODE, at, self._find_fence_end(at, fence))
        if body.startswith(">>> "):
            return self._add(BlockKind.CODE, at, self._find_end(at, lambda _: True))
        if self._opens_table(at):
            return self._add(BlockKind.TABLE, at, self._find_end(at, lambda line: "|" in line.body))
        if name := marks.read_field(body):
            return self._read_records(at, name)
        if item := marks.read_item(body):
            return self._read_list(at, item)
        if self._opens_code(at):
            return self._add(BlockKind.CODE, at, self._find_indented_end(at, self._container + _CODE_INDENT))
        return self._read_paragraph(at)

    def _add(self, kind: BlockKind, first: int, after: int, numbers: tuple[int, int] = (0, 0)) -> int:
        # Indentation belongs to code and to lists, where it says what is inside of what.
        line, last = self._lines[first], self._lines[after - 1]
        is_indented = kind == BlockKind.PARAGRAPH and line.indent and not line.quoted
        start = line.end - len(line.body) if is_indented else line.start
        self._drafts.append(BlockDraft(kind, first, after - 1, start, last.end, line.section, *numbers))
        return after

    def _opens_code(self, at: int) -> bool:
        line = self._lines[at]
        if self._is_rst or line.indent < self._container + _CODE_INDENT or line.quoted:
            return False
        if at and self._lines[at - 1].role == LineRole.TEXT:
            return False
        # Prose can be indented for its looks.
        words = line.body.split(None, 8)
        reads_as_prose = len(words) > 4 and line.body[0].isupper() and sum(word.isalpha() for word in words) > 4
        return not reads_as_prose

    def _read_records(self, at: int, name: str) -> int:
        names = {name}
        end = at + 1
        while self._is_text(end, at):
            body = self._lines[end].body
            other = marks.read_field(body)
            if not other and marks.read_first_field(body) not in names:
                break
            names.add(other)
            end += 1
        is_table = end - at > 1 or self._lines[at].body.count("; ") > 1
        return self._add(BlockKind.RECORDS, at, end) if is_table else self._read_paragraph(at)

    def _read_directive(self, at: int, directive: Directive) -> int:
        line = self._lines[at]
        body = self._next_text(at + 1)
        has_body = self._is_text(body, at) and self._lines[body].indent > line.indent
        if directive in (Directive.CODE, Directive.HIDDEN):
            if not has_body:
                return at + 1
            end = self._find_indented_end(body, line.indent + 1)
            while directive == Directive.CODE and body < end and self._lines[body].body.startswith(":"):
                body = self._next_text(body + 1)
            return end if directive == Directive.HIDDEN or body >= end else self._add(BlockKind.CODE, body, end)
        if directive == Directive.DEFINITION:
            end = self._find_end(at, lambda below: below.indent > line.indent and not below.body.startswith(":"))
            self._add(BlockKind.PARAGRAPH, at, end)
            self._drafts[-1].joins_next = has_body
            return end
        return at + 1

    def _read_paragraph(self, at: int) -> int:
        first = self._lines[at]
        end = at + 1
        while end < len(self._lines):
            line = self._lines[end]
            if not self._is_text(end, at):
                resumed = self._find_resumption(end)
                if resumed is None:
                    break
                end = resumed + 1
                continue
            if self._begins_anew(end, first.quoted) or self._ends_paragraph(self._lines[end - 1], line):
                break
            end += 1
        self._add(BlockKind.PARAGRAPH, at, end)
        if self._is_rst and self._lines[end - 1].body.endswith("::"):
            code = self._next_text(end)
            if self._is_text(code, at) and self._lines[code].indent > first.indent:
                return self._add(BlockKind.CODE, code, self._find_indented_end(code, first.indent + 1))
        return end

    def _read_list(self, at: int, item: Item) -> int:
        first = self._lines[at]
        item_lines = [at]
        base = first.indent
        is_numbered = item.number is not None
        first_number = last_number = item.number or 0
        end = at + 1
        below = at + 1
        while below < len(self._lines):
            line = self._lines[below]
            if line.section != first.section:
                break
            if line.role != LineRole.TEXT or is_page_number(line.body):
                below += 1
                continue
            is_apart = below > end
            above = self._lines[end - 1]
            next_item = marks.read_item(line.body)
            if next_item is not None:
                is_inner = line.indent >= base + 2
                is_like = (next_item.number is None) == (not is_numbered)
                if not is_inner and is_like:
                    base = min(base, line.indent)
                    last_number = next_item.number or last_number + 1
                elif not is_inner and (not is_numbered or is_apart):
                    break
                item_lines.append(below)
                end = below + 1
            elif (skipped := self._skip_in_list(below)) > below:
                below = skipped
                continue
            elif line.indent >= base + 2 or (not is_apart and self._continues_item(above, below)):
                fence = marks.opens_fence(line.body)
                end = self._find_fence_end(below, fence) if fence else below + 1
            elif is_apart and self._find_resumption(end) == below:
                end = below + 1
            else:
                break
            below = end
        length = self._lines[end - 1].end - first.start
        if length > _LONG_LIST and length > _LONG_ITEMS * len(item_lines):
            for begin, after in pairwise([*item_lines, end]):
                self._add(BlockKind.PARAGRAPH, begin, after)
            return end
        self._add(BlockKind.STEPS if is_numbered else BlockKind.LIST, at, end, (first_number, last_number))
        self._drafts[-1].is_single = len(item_lines) == 1
        return end
