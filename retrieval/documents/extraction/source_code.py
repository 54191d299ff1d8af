"""Extract source code and configuration files, with one section for each definition."""

from __future__ import annotations

import itertools
import json
import re

from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.media_types import JSON, JSON_LINES
from retrieval.text.extracted import ExtractedText, ExtractionLimits, Section, Span, find_line_starts

# Group 1 is the indentation; ``name`` becomes the title of a section.
_PYTHON = re.compile(r"([ \t]*)(?:async[ \t]+def|def|class)[ \t]+(?P<name>\w+)")
_RUBY = re.compile(r"([ \t]*)(?:def|class|module)[ \t]+(?P<name>[\w.:?!]+)")
_MODIFIERS = (
    r"(?:(?:export|default|declare|public|protected|private|internal|static|final|abstract|sealed|async|unsafe"
    r"|pub(?:\([^()]*\))?)[ \t]+)*"
)
_BRACES = re.compile(
    rf"([ \t]*){_MODIFIERS}(?:class|interface|struct|enum|trait|record|impl(?:<[^<>]*>)?|func(?:[ \t]*\([^()]*\))?"
    r"|fun|fn|function\*?|namespace|object|mod|type|message|service)[ \t]+(?P<name>[\w$]+)"
)
_ARROW = re.compile(
    r"([ \t]*)(?:export[ \t]+)?(?:const|let|var)[ \t]+(?P<name>[\w$]+)[ \t]*=[ \t]*(?:async[ \t]*)?"
    r"(?:function\b|\([^()]*\)[ \t]*=>|\w+[ \t]*=>)"
)
_METHOD = re.compile(
    r"([ \t]*)(?!(?:return|else|new|if|for|while|switch|catch|throw|goto|case)\b)[\w:*&<>\[\],.@~]+"
    r"(?:[ \t]+[\w:*&<>\[\],.~]+)*[ \t]+[*&]*(?P<name>~?[\w:]+)[ \t]*\([^();]*\)[^;()=]*$"
)
_SHELL = re.compile(r"()(?:function[ \t]+)?(?P<name>[\w-]+)[ \t]*\(\)[ \t]*\{?")
_SQL = re.compile(
    r"()create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:(?:temp|temporary|unique|materialized|unlogged)[ \t]+)*"
    r"(?:table|view|function|procedure|trigger|index|type|schema)[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?"
    r"(?P<name>[\w.\"`]+)",
    re.I,
)
_TABLE = re.compile(r"()\[+(?P<name>[^\[\]]{1,100})\]+[ \t]*(?:[#;].*)?$")
_KEY = re.compile(r"()(?P<name>[A-Za-z_][\w.-]*):[ \t]*(?:[#&!|>].*)?$")

_C_LIKE = (_BRACES, _METHOD)
_FAMILIES: dict[str, tuple[re.Pattern[str], ...]] = {
    "text/x-python": (_PYTHON,),
    "text/x-ruby": (_RUBY,),
    "text/javascript": (_BRACES, _ARROW),
    "text/x-typescript": (_BRACES, _ARROW),
    "text/x-shellscript": (_SHELL,),
    "text/x-sql": (_SQL,),
    "text/x-toml": (_TABLE,),
    "text/x-ini": (_TABLE,),
    "text/x-yaml": (_KEY,),
    **dict.fromkeys(
        ("text/x-go", "text/x-rust", "text/x-php", "text/x-kotlin", "text/x-scala", "text/x-swift", "text/x-protobuf"),
        (_BRACES,),
    ),
    **dict.fromkeys(("text/x-java", "text/x-csharp", "text/x-c", "text/x-c++"), _C_LIKE),
}
_MAX_LINE_CHARS = 300
_LEAD = re.compile(r"\s*(?:#|//|/\*|\*|--|@|///|\"\"\")")
# Programs that write these formats write letters beyond ASCII as codes: "caf\u00e9" in JSON, "caf\xE9" in YAML.
_ESCAPED = frozenset({JSON, JSON_LINES, "text/x-yaml", "text/x-ini"})
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|.)")
_TRIPLE = re.compile(r'"""|\'\'\'')


def extract_source(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    text = decode(data, filename)
    if media_type in _ESCAPED:
        text = make_canonical_text(_ESCAPE.sub(_show_escaped_letters, text))
    starts = find_line_starts(text)
    lines = [text[start:end].rstrip("\n") for start, end in itertools.pairwise(starts)]
    if media_type == JSON_LINES:
        sections: list[Section] = []
        cuts = list(range(len(lines)))
    else:
        found = _find_definitions(lines, _FAMILIES.get(media_type, ()), media_type)
        sections = [Section(starts[at], level, name) for at, level, name in found]
        cuts = [0, *(at for at, _, _ in found)] if media_type != JSON else [0]
    edges = [starts[at] for at in cuts] + [len(text)]
    blocks = [Span(start, start + len(text[start:end].rstrip())) for start, end in itertools.pairwise(edges)]
    protected = [block for block in blocks if block.start < block.end]
    return ExtractedText(text, title=filename, sections=sections, protected=protected)


def _find_definitions(
    lines: list[str], patterns: tuple[re.Pattern[str], ...], media_type: str
) -> list[tuple[int, int, str]]:
    """Return line, level and name of each definition at the top level or one level deeper.

    The line is the first comment or decorator above the definition.
    """
    found: list[tuple[int, int, str]] = []
    inner: int | None = None
    in_string = False
    floor = 0
    for at, line in enumerate(lines):
        was_in_string = in_string
        if media_type == "text/x-python":
            in_string ^= len(_TRIPLE.findall(line)) % 2 == 1
        if was_in_string or len(line) > _MAX_LINE_CHARS or not line:
            continue
        match = next(filter(None, (pattern.match(line) for pattern in patterns)), None)
        if not match:
            continue
        indent = len(match[1].expandtabs(4))
        if indent == 0:
            inner = None
        elif not found or indent > (inner or indent) or indent > 8:
            continue
        else:
            inner = indent
        lead = at
        while lead > floor and lines[lead - 1].strip() and _LEAD.match(lines[lead - 1]):
            lead -= 1
        found.append((lead, 1 if indent == 0 else 2, match["name"].strip('"`')))
        floor = at + 1
    return found


def _show_escaped_letters(escape: re.Match[str]) -> str:
    if escape[0][1] not in "ux" or len(escape[0]) == 2:
        return escape[0]
    code = escape[0].replace("\\x", "\\u00")
    letter: str = json.loads(f'"{code}"')
    return letter if letter >= "\xa0" else escape[0]
