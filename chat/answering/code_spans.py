"""Where the code is in an answer's Markdown: between fences, and between backticks. PURE.

Brackets in code are no markers. Of an answer that is still being written, only what is certain counts as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Where a paragraph, a list item or a table row ends.
PIECE_BREAK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:\||(?:[-*+•]|\d{1,3}[.)])[ \t]))")
# What may stand in front of a fence: the signs of lists and of quotations.
_INDENT = r"[ \t]*(?:(?:>|(?:[-*+•]|\d{1,3}[.)])[ \t])[ \t]*)*"
_INLINE_END = rf"{PIECE_BREAK.pattern}|\n(?={_INDENT}(?:`{{3}}|~{{3}}))"
# Backticks whose like is further away than this are text: nobody waits for it any longer.
_LONGEST_INLINE = 300
_CODE = re.compile(
    rf"^{_INDENT}(?P<fence>`{{3,}}(?=[^`\n]*$)|~{{3,}})[^\n]*"
    r"(?:\n.*?^[ \t>]*(?P=fence)[`~]*[ \t]*$|(?P<open>.*)\Z)"
    rf"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!{_INLINE_END}).){{1,{_LONGEST_INLINE}}}?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_ENDS_OF_INLINE = re.compile(_INLINE_END)
_TICKS = re.compile(r"`+")
# A line that may become a fence, and backticks or tildes that may become more of them.
_UNDECIDED = re.compile(rf"^{_INDENT}(?:`{{3}}|~{{3}})[^\n]*+\Z|(?<![`~])[`~]++\Z", re.MULTILINE)
_NO_WORDS = re.compile(r"[\s>*+•.)\d-]*")
_NOT_A_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Code:
    """``text[start:end]`` is code, its fences or backticks included.

    ``fence`` opens a block; it is empty for code within a line. A block that ``is_open`` has no end yet.
    """

    start: int
    end: int
    fence: str = ""
    is_open: bool = False


def find_code(text: str) -> list[Code]:
    """The code of a text, in order. Backticks without their like in the same paragraph, list item or row are text."""
    return [
        Code(
            match.start("fence" if match["fence"] else "ticks"),
            match.end(),
            match["fence"] or "",
            match["open"] is not None,
        )
        for match in _CODE.finditer(text)
    ]


def blank_code(text: str) -> str:
    """The text with spaces in place of its code; of the same length, in the same lines."""
    return without(text, [(code.start, code.end) for code in find_code(text)])


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with spaces in place of the spans, which are in order; of the same length, in the same lines."""
    pieces = []
    position = 0
    for start, end in spans:
        pieces += [text[position:start], blank(text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def blank(text: str) -> str:
    """As many spaces, in the same lines."""
    return _NOT_A_NEWLINE.sub(" ", text)


def settled(text: str) -> int:
    """The length of the beginning of a text in which it is certain what is code, whatever follows.

    Of a block whose end has not come, that is all but its last line.
    """
    return _settled(text)[0]


def context(text: str) -> str:
    """A short text after which code is recognised as it is after the whole ``text``."""
    upto, block = _settled(text)
    if block is not None:
        begin = text.rfind("\n", 0, block.start) + 1
        return text[begin : min(upto, text.find("\n", begin) + 1)] + text[upto:]
    line = text[text.rfind("\n", 0, upto) + 1 : upto]
    # Once a line has begun with words, no fence can begin in it.
    return (line if _NO_WORDS.fullmatch(line) else ".") + text[upto:]


def _settled(text: str) -> tuple[int, Code | None]:
    """As :func:`settled`, and the block that is still open there."""
    undecided = _UNDECIDED.search(text)
    text = text[: undecided.start()] if undecided else text
    codes = find_code(text)
    if codes and codes[-1].is_open:
        return text.rfind("\n") + 1, codes[-1]
    last_end = max((match.start() for match in _ENDS_OF_INLINE.finditer(text)), default=0)
    for ticks in _TICKS.finditer(text, last_end):
        if len(text) <= ticks.end() + _LONGEST_INLINE and not any(
            code.start <= ticks.start() < code.end for code in codes
        ):
            return ticks.start(), None
    return len(text), None
