"""Offsets of lines, and the words of a heading without its markup."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"<[^<>]{1,300}>")
_ATTRIBUTES = re.compile(r"(?<!\s)\s*+\{[#.:][^{}]*+\}\s*+$")
_EMPHASIS = (
    re.compile(r"(\*{1,3}|~~)(?=\S)([^*~]+?)(?<=\S)\1"),
    re.compile(r"(?<!\w)(_{1,3})(?=\S)([^_]++(?:(?<=\w)_(?=\w)[^_]*+)*?)(?<=\S)\1(?!\w)"),
)
_VERBATIM = re.compile(r"(?<!`)(`++)([^`]++)\1|\\([!-/:-@\[-`{-~])")
_CLOSING_HASHES = re.compile(r"(?<!\s)\s++#++\s*+$")
_ROLE = re.compile(r"(?<![\w:+-]):[\w:+-]+:`~?([^`<]*+)(?:<[^`>]*+>)?`")
_ORDERING = re.compile(r"\d{1,3}[\s_.-]+(?=[^\W\d])")
MAX_TITLE_CHARS = 200


def find_line_starts(text: str) -> list[int]:
    """The offset of each line of ``text``, then ``len(text)``: line i is ``text[starts[i]:starts[i + 1]]``."""
    starts = [0]
    starts.extend(match.end() for match in re.finditer("\n", text))
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def plain_title(source: str) -> str:
    """A heading's words without Markdown or reStructuredText markup, on one line, at most ``MAX_TITLE_CHARS`` long."""
    title = _ROLE.sub(lambda match: f"`{match[1].rstrip()}`", source[: 4 * MAX_TITLE_CHARS])
    title = _ATTRIBUTES.sub("", _CLOSING_HASHES.sub("", title))
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[2] or match[3])
        return chr(0xF0000 + len(kept) - 1)

    title = _TAG.sub("", _LINK.sub(r"\1", _VERBATIM.sub(keep, title)))
    for emphasis in _EMPHASIS:
        title = emphasis.sub(r"\2", title)
    title = re.sub(
        "[\U000f0000-\U000f0fff]",
        lambda match: kept[ord(match[0]) - 0xF0000] if ord(match[0]) - 0xF0000 < len(kept) else "",
        title,
    )
    title = " ".join(title.split())
    if len(title) > MAX_TITLE_CHARS:
        title = title[: MAX_TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
    return title


def derive_title(filename: str) -> str:
    """A readable title from a file's name: no extension, no number that orders files, spaces for underscores and
    hyphens.
    """
    stem = PurePosixPath(filename).stem
    if _ORDERING.match(filename):
        stem = _ORDERING.sub("", stem, count=1)
    title = " ".join(re.split(r"[\s_-]+", stem)).strip()
    return (title[0].upper() + title[1:] if title.islower() else title) or filename
