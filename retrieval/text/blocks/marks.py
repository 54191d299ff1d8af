"""What single lines are: items of lists, fences, rows, template tags. PURE."""

from __future__ import annotations

import re
from typing import NamedTuple

_BULLET = re.compile(r"[-*+•‣◦▪●·–](?=\s)|[•‣◦▪●]")
_NUMBER = re.compile(
    r"(?:\*\*|__)?(?:(?:Step|Stap|STEP|STAP|step|stap)\s{1,3}(?P<step>\d{1,3})(?:\s?[.:)–—-]|\*\*|$)"
    r"|(?P<number>\d{1,3})[.)](?=[\s*_]|$)|\((?P<bracketed>\d{1,3})\)(?=\s)|(?P<letter>[a-z])[.)](?=\s)"
    r"|\((?P<bracketed_letter>[a-z])\)(?=\s)|(?P<roman>[ivx]{2,4})[.)](?=\s)|(?P<auto>\#)\.(?=\s))"
)
_ROMAN = {"ii": 2, "iii": 3, "iv": 4, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "xi": 11, "xii": 12, "xiii": 13}
_TAGS = re.compile(r"(?:</?[A-Za-z!](?![\w.+-]*+:/)[^<>]{0,500}>\s*+)++")
_LINK_TARGET = re.compile(r"\[(?!\^)[^\[\]]{1,200}\]:\s*+\S")
_TOC_LINE = re.compile(r".{1,200}?(?:\.{4,}|(?: \.){4,}|…{2,})\s{0,5}\d{1,4}")
_TOC_MARK = re.compile(r"\[\[?_?TOC_?\]?\]|\{:.{0,200}\}|\{toc.{0,50}\}", re.I)
_IMAGES = re.compile(
    r"(?:\[?!\[[^\[\]]{0,300}\](?:\([^()]{0,1000}\)|\[[^\[\]]{0,100}\])(?:\]\([^()]{0,1000}\))?\s*+)++"
)
_MDX = re.compile(
    r"import\s+\S.{0,200}\sfrom\s+(['\"]).{1,200}\1;?|import\s+(['\"]).{1,200}\2;?|export\s+(?:default|const)\s.{0,300}"
)
_FENCE = re.compile(r"(`{3,}|~{3,})([^`]*+)$")
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]+\w|:::")
_DELIMITER = frozenset("|-: \t")
_FIELD = re.compile(r"([^:;.!?|]{1,80}): ")
_NEXT_FIELD = re.compile(r"; [^:;.!?|]{1,80}: ")
_LONGEST_SNIFF = 2_000


class Item(NamedTuple):
    """The mark of a list item: ``number`` is None for a bullet, 0 where it is counted automatically; ``width`` is that
    of the mark."""

    number: int | None
    width: int
    is_counted: bool


def read_item(body: str) -> Item | None:
    """The mark at the start of the line, if the line is an item of a list."""
    bullet = _BULLET.match(body)
    if bullet:
        return None if is_rule(body) else Item(None, bullet.end() + 1, is_counted=False)
    number = _NUMBER.match(body)
    if not number:
        return None
    digits = number["step"] or number["number"] or number["bracketed"]
    letter = number["letter"] or number["bracketed_letter"]
    if digits:
        value = int(digits)
    elif letter:
        value = ord(letter) - ord("a") + 1
    else:
        value = _ROMAN.get(number["roman"] or "", 0)
    return Item(value, number.end() + 1, is_counted=digits is not None)


def is_rule(body: str) -> bool:
    """A horizontal rule, of Markdown or of reStructuredText."""
    marks = body.replace(" ", "")
    return len(marks) >= 3 and marks[0] in "-*_=^#+" and marks == marks[0] * len(marks)


def opens_fence(body: str) -> str:
    """The fence that the line opens, or an empty string."""
    match = _FENCE.match(body) if body[0] in "`~" else None
    return match[1] if match and not (match[1][0] == "~" and "~" in match[2]) else ""


def closes_fence(body: str, fence: str) -> bool:
    return body.startswith(fence) and body == fence[0] * len(body)


def is_delimiter(body: str) -> bool:
    """The line below the header of a Markdown table."""
    return "-" in body and "|" in body and _DELIMITER.issuperset(body)


def is_hidden(body: str) -> bool:
    """Whether the line alone is no content: a rule, a template tag, an import of MDX, tags of HTML, a picture, the
    target of a link, a line of a table of contents."""
    if body[0].isalnum():
        is_mdx = body.startswith(("import ", "export ")) and _MDX.fullmatch(body) is not None
        return is_mdx or (body[-1].isdigit() and _TOC_LINE.fullmatch(body[-300:]) is not None)
    return (
        is_rule(body)
        or (body.startswith("<%") and body.endswith("%>"))
        or (body.startswith(("{%", "{{", "{#")) and body.endswith(("%}", "}}", "#}")))
        or (body[0] == "<" and len(body) <= 2_000 and _TAGS.fullmatch(body) is not None)
        or (body[0] == "[" and (_LINK_TARGET.match(body) or _TOC_MARK.fullmatch(body)) is not None)
        or (body[0] == "{" and _TOC_MARK.fullmatch(body) is not None)
        or (body[0] in "![" and len(body) <= 3_000 and _IMAGES.fullmatch(body) is not None)
    )


def opens_admonition(body: str) -> bool:
    """The mark of a note, whose text is indented below it or stands up to another mark."""
    return _ADMONITION.match(body) is not None


def read_field(body: str) -> str:
    """The name of the first field of a ``name: value; name: value`` line; empty if it is none."""
    first = _FIELD.match(body)
    return first[1] if first and _NEXT_FIELD.search(body, first.end(), _LONGEST_SNIFF) else ""


def read_first_field(body: str) -> str:
    """The name before the first colon."""
    first = _FIELD.match(body)
    return first[1] if first else ""
