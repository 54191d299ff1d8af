"""One pass over the lines of a text that groups them into drafts of blocks. PURE.

Each line is looked at a fixed number of times, whatever stands in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from retrieval.text.block import BlockKind
from retrieval.text.block_lines import (
    Item,
    Line,
    LineRole,
    closes_fence,
    is_delimiter,
    is_hidden,
    is_rule,
    opens_admonition,
    opens_fence,
    read_field,
    read_first_field,
    read_item,
)


class Scanner:
    """The lines of a text, read once from the first to the last."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        # The column at which the text of a note stands.
        self._container = 0
        self._last_comment_end = max((at for at, line in enumerate(lines) if "-->" in line.body), default=-1)
        # A section without the end of its table is not searched for it again.
        self._unclosed_section = -1
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
        if fence := opens_fence(body):
            return self._add(BlockKind.CODE, at, self._find_fence_end(at, fence))
        if body.startswith(">>> "):
            return self._add(BlockKind.CODE, at, self._find_end(at, lambda _: True))
        if self._opens_table(at):
            return self._add(BlockKind.TABLE, at, self._find_end(at, lambda line: "|" in line.body))
        if name := read_field(body):
            return self._read_records(at, name)
        if item := read_item(body):
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
        if line.indent < self._container + _CODE_INDENT or line.quoted:
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
            other = read_field(body)
            if not other and read_first_field(body) not in names:
                break
            names.add(other)
            end += 1
        is_table = end - at > 1 or self._lines[at].body.count("; ") > 1
        return self._add(BlockKind.RECORDS, at, end) if is_table else self._read_paragraph(at)

    def _read_paragraph(self, at: int) -> int:
        first = self._lines[at]
        end = at + 1
        while self._is_text(end, at) and not self._begins_anew(end, first.quoted):
            end += 1
        return self._add(BlockKind.PARAGRAPH, at, end)

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
            if line.role != LineRole.TEXT:
                below += 1
                continue
            is_apart = below > end
            next_item = read_item(line.body)
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
            elif line.indent >= base + 2 or not is_apart:
                fence = opens_fence(line.body)
                end = self._find_fence_end(below, fence) if fence else below + 1
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

    # What stands around a line

    def _find_end(self, at: int, belongs: Callable[[Line], bool]) -> int:
        end = at + 1
        while self._is_text(end, at) and belongs(self._lines[end]):
            end += 1
        return end

    def _is_text(self, at: int, above: int) -> bool:
        """Whether line ``at`` exists, is text, and stands in the section of line ``above``."""
        if at >= len(self._lines):
            return False
        line = self._lines[at]
        return line.role == LineRole.TEXT and line.section == self._lines[above].section

    def _skip(self, at: int) -> int:
        """The line after what is no content and begins at ``at``; ``at`` itself where content begins."""
        line = self._lines[at]
        if line.body.startswith("<!--"):
            end = at
            while end < self._last_comment_end and "-->" not in self._lines[end].body:
                end += 1
            return end + 1
        if opens_admonition(line.body):
            below = self._next_text(at + 1)
            if below < len(self._lines) and self._lines[below].indent > line.indent and line.body[0] != ":":
                self._container = self._lines[below].indent
            return at + 1
        return at + 1 if is_hidden(line.body) else at

    def _next_text(self, at: int) -> int:
        while at < len(self._lines) and self._lines[at].role == LineRole.BLANK:
            at += 1
        return at

    def _find_fence_end(self, at: int, fence: str) -> int:
        quoted = self._lines[at].quoted
        end = at + 1
        while end < len(self._lines):
            line = self._lines[end]
            if line.section != self._lines[at].section or (line.role == LineRole.TEXT and line.quoted < quoted):
                return end
            end += 1
            if closes_fence(line.body, fence):
                break
        return end

    def _find_indented_end(self, at: int, indent: int) -> int:
        """The line after the last one from ``at`` on that stands at ``indent`` or deeper."""
        end = at
        section = self._lines[at].section
        while at < len(self._lines):
            line = self._lines[at]
            at += 1
            if line.section != section or (line.role == LineRole.TEXT and line.indent < indent):
                break
            if line.role == LineRole.TEXT:
                end = at
        return end

    def _find_table_end(self, at: int) -> int:
        """The line after the table of HTML that begins at line ``at``; 0 where it is not closed in its section."""
        section = self._lines[at].section
        end = at
        while section != self._unclosed_section and end < len(self._lines) and self._lines[end].section == section:
            end += 1
            if "</table" in self._lines[end - 1].body:
                return end
        self._unclosed_section = section
        return 0

    def _opens_table(self, at: int) -> bool:
        body = self._lines[at].body
        if "|" not in body or not self._is_text(at + 1, at):
            return False
        return is_delimiter(self._lines[at + 1].body)

    def _begins_anew(self, at: int, quoted: int) -> bool:
        """Whether line ``at``, right below a line of text, is no continuation of it."""
        line = self._lines[at]
        if line.quoted > quoted or line.body.startswith(("<!--", ">>> ")) or is_hidden(line.body):
            return True
        item = read_item(line.body)
        if item is not None:
            return item.number is None or item.number <= 1
        return bool(opens_fence(line.body) or opens_admonition(line.body) or self._opens_table(at))

    def _skip_in_list(self, at: int) -> int:
        body = self._lines[at].body
        return at if is_rule(body) or opens_admonition(body) else self._skip(at)


_CODE_INDENT = 4
# Numbered paragraphs this long, of a contract, are no items that are read in one go.
_LONG_LIST = 3_000
_LONG_ITEMS = 600


@dataclass(slots=True)
class BlockDraft:
    """Lines ``first`` to ``last`` of a text as what may become a block, at ``start`` to ``end``.

    ``first_number`` and ``last_number`` are those of the outermost items of a procedure; ``is_single`` says that there
    is one item.
    """

    kind: BlockKind
    first: int
    last: int
    start: int
    end: int
    section: int
    first_number: int = 0
    last_number: int = 0
    is_single: bool = False
    lead_in: tuple[int, int] | None = None
