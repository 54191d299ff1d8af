"""Directives of reStructuredText, by what their text is. PURE."""

from __future__ import annotations

import re
from enum import Enum

_DIRECTIVE = re.compile(r"\.\. (?:([\w:-]{1,40})::(?:\s|$)(.{0,200}))?")
_CODE = frozenset(
    # Tables of reStructuredText too: their columns stand in place only where each letter is as wide as another.
    [
        "code-block",
        "code",
        "sourcecode",
        "parsed-literal",
        "console",
        "math",
        "prompt",
        "snippet",
        "csv-table",
        "list-table",
        "table",
    ]
)
_HIDDEN = frozenset(
    [
        "toctree",
        "contents",
        "index",
        "image",
        "highlight",
        "raw",
        "include",
        "module",
        "currentmodule",
        "py:module",
        "py:currentmodule",
        "default-domain",
        "meta",
        "sectnum",
        "role",
        "default-role",
        "templatefixture",
    ]
)
_NOTES = frozenset(
    [
        "note",
        "warning",
        "tip",
        "important",
        "caution",
        "danger",
        "error",
        "hint",
        "attention",
        "seealso",
        "admonition",
        "topic",
        "figure",
        "sidebar",
        "only",
        "container",
        "rubric",
    ]
)


class Directive(Enum):
    """``HIDDEN`` has no text to quote, also in its body. The body of ``NOTE`` is text; so is the line of
    ``DEFINITION``, which names what its body explains."""

    CODE = "code"
    HIDDEN = "hidden"
    NOTE = "note"
    DEFINITION = "definition"


def read_directive(body: str) -> Directive | None:
    """What the directive, target or comment is that the line opens; None for any other line."""
    if not body.startswith(".. "):
        return None
    match = _DIRECTIVE.match(body)
    name = match[1] if match else None
    if not name or name in _HIDDEN:
        return Directive.HIDDEN
    if name in _CODE:
        return Directive.CODE
    return Directive.NOTE if name in _NOTES else Directive.DEFINITION
