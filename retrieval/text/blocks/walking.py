"""Where the lines of one thing end and those of another begin. PURE."""

from __future__ import annotations

from collections.abc import Callable

from retrieval.text.blocks import marks
from retrieval.text.blocks.directives import read_directive
from retrieval.text.blocks.lines import Line, LineRole

_NEAREST_WRAP = 0.85
_SENTENCE_ENDS = (".", "!", "?", ":", "…")
_CLOSERS = "\"'”’»)]*_`"


class Walk:
    """The lines of a text, and questions about what stands around one of them."""

    def __init__(self, lines: list[Line], *, is_paged: bool) -> None:
        self._lines = lines
        # The column at which the text of a note stands.
        self._container = 0
        self._is_rst = any(line.body.startswith(".. ") and read_directive(line.body) for line in lines)
        # The width at which the lines of a printed page were wrapped.
        lengths = sorted(line.end - line.start for line in lines if line.role == LineRole.TEXT) if is_paged else []
        self._wrapped_at = _NEAREST_WRAP * lengths[len(lengths) * 9 // 10] if lengths else 0.0
        self._last_comment_end = max((at for at, line in enumerate(lines) if "-->" in line.body), default=-1)
        # A section without the end of its table is not searched for it again.
        self._unclosed_section = -1

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
        if line.body.startswith("<%") and "%>" not in line.body:
            end = at
            while self._is_text(end, at) and "%>" not in self._lines[end].body:
                end += 1
            return end + 1 if self._is_text(end, at) else end
        if marks.opens_admonition(line.body):
            below = self._next_text(at + 1)
            if below < len(self._lines) and self._lines[below].indent > line.indent and line.body[0] != ":":
                self._container = self._lines[below].indent
            return at + 1
        return at + 1 if marks.is_hidden(line.body) else at

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
            if marks.closes_fence(line.body, fence):
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
        below = self._lines[at + 1]
        return marks.is_delimiter(below.body) or (body[0] == "|" == below.body[0] and body[-1] == "|")

    def _begins_anew(self, at: int, quoted: int) -> bool:
        """Whether line ``at``, right below a line of text, is no continuation of it."""
        line = self._lines[at]
        if line.quoted > quoted or line.body.startswith(("<!--", "<%", ">>> ")) or marks.is_hidden(line.body):
            return True
        item = marks.read_item(line.body)
        if item is not None:
            if item.number is None:
                above = self._lines[at - 1].body
                return not line.body.startswith("–") or above.endswith(_SENTENCE_ENDS)
            return item.number <= 1 or line.body.lower().startswith(("step", "stap", "**"))
        return bool(
            marks.opens_fence(line.body)
            or marks.opens_admonition(line.body)
            or (self._is_rst and read_directive(line.body))
            or self._opens_table(at)
        )

    def _ends_paragraph(self, above: Line, line: Line) -> bool:
        """Whether, on a printed page, ``above`` is the last line of its paragraph: a short one that ends a sentence."""
        return bool(self._wrapped_at) and _ends_sentence(above.body) and self._is_short(above, line)

    def _is_short(self, above: Line, line: Line) -> bool:
        word = line.body[:100].split(None, 1)[0]
        return above.end - above.start + 1 + len(word) < self._wrapped_at

    def _find_resumption(self, at: int) -> int | None:
        """The line where text that a page's end cut off at line ``at`` goes on; None where it does not."""
        if not self._wrapped_at:
            return None
        above = at - 1
        while at < len(self._lines) and self._lines[at].role in (LineRole.BLANK, LineRole.HIDDEN):
            at += 1
        if not self._is_text(at, above):
            return None
        above_line, line = self._lines[above], self._lines[at]
        crosses = any(each.tops_page for each in self._lines[above + 1 : at + 1])
        if not crosses or _ends_sentence(above_line.body) or marks.read_item(line.body):
            return None
        goes_on = line.body[0].islower() or not self._is_short(above_line, line)
        return at if goes_on else None

    def _skip_in_list(self, at: int) -> int:
        body = self._lines[at].body
        return at if marks.is_rule(body) or marks.opens_admonition(body) else self._skip(at)

    def _continues_item(self, above: Line, at: int) -> bool:
        """Whether line ``at``, right below an item and not indented, belongs to it."""
        line = self._lines[at]
        if marks.opens_fence(line.body):
            return True
        if line.quoted > above.quoted or self._opens_table(at) or marks.is_rule(line.body):
            return False
        if self._is_rst and read_directive(line.body):
            return False
        # Of some printed lists the mark is a line of its own.
        if not self._wrapped_at or len(above.body) <= 3:
            return True
        ends_item = _ends_sentence(above.body) or above.body.endswith(";") or not line.body[0].islower()
        return not (ends_item and self._is_short(above, line))


def _ends_sentence(body: str) -> bool:
    return body[-20:].rstrip(_CLOSERS).endswith(_SENTENCE_ENDS)
