"""Convert reStructuredText to Markdown, line by line.

docutils is not used, because it rejects Sphinx's markup and cannot write Markdown.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from retrieval.documents.extraction.writer import write_markdown_table

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+")
_SIGNALS = re.compile(r"^\.\. |::[^\S\n]*+$|:[\w:-]{1,60}:`|(?<!`)``[^`\n]++``|(?<!`)`[^`\n]++`_", re.M)
_DIRECTIVE = re.compile(r"\.\. ++(?:\|[^|]{1,80}+\| ++)?([\w+.-]++(?::[\w+.-]++)?)::(?: ++(.*+))?+")
_EXPLICIT = re.compile(r"\.\.(?: |$)")
_FOOTNOTE = re.compile(r"\.\. (\[[^\]\n]{1,40}\]) ?(.*)")
_OPTION = re.compile(r":[\w -]{1,40}:(?: |$)")
_FIELD = re.compile(r":([^:`\n]{1,80}+):(?: ++(.*+))?+")
_ITEM = re.compile(r"([*+•-]|(?:#|\d{1,3}|[A-Za-z])[.)]|\((?:\d{1,3}|[a-z])\)) +(?=\S)")
_GRID = re.compile(r"\+[-=+]{3,}\+")
_SIMPLE = re.compile(r"=+(?: +=+)+")
_DIRECTIVES = {
    name: kind
    for kind, names in {
        "code": "code-block code sourcecode parsed-literal prompt console math productionlist graphviz doctest",
        "hidden": "toctree index contents highlight include raw meta image currentmodule module automodule autoclass "
        "autofunction autosummary sectionauthor codeauthor tabularcolumns default-role role literalinclude unicode "
        "replace sectnum header footer title templatefixture default-domain tags",
        "note": "note warning tip hint important attention caution danger error seealso todo",
        # The argument of a directive becomes a title, or a signature for the kind "object" and unknown directives.
        # For the kind "bare", the argument is left out.
        "title": "rubric topic admonition sidebar tab-item tab group-tab dropdown table list-table csv-table",
        # These directives become sections, so that searches find the names in their arguments.
        "object": "function method classmethod staticmethod class attribute property data exception decorator module "
        "describe object option cmdoption envvar confval setting django-admin django-admin-option templatetag "
        "templatefilter fieldlookup macro struct union enum enumerator var member type alias concept namespace "
        "directive",
        "bare": "figure only container rst-class cssclass tab-set",
    }.items()
    for name in names.split()
}
_VERSIONS = {"versionadded": "New in version", "versionchanged": "Changed in version", "deprecated": "Deprecated since"}
# Deeper than any real document, and below Python's recursion limit.
_DEEPEST = 20

_ROLE = re.compile(r":([\w:+.-]{1,60}):`([^`\n]{1,500}(?:\n[^`\n]{1,500})?)`")
_TITLED = re.compile(r"([^<>]++)<[^<>]++>")
_LITERAL = re.compile(r"``([^`\n]++(?:[`\n][^`\n]++){0,3})``(?!`)")
_LINK = re.compile(r"`([^`<]{1,300}?)\s*<([^<>`\s]{1,500})>`__?")
_REFERENCE = re.compile(r"(?<![`\w:])`([^`]{1,200})`__?(?!\w)|\b([A-Za-z][\w.-]{0,80}\w)__?(?![\w`])(?=[\s.,;:)!?]|$)")
_NOTE = re.compile(r"([ \t]?)\[([#*]?)([\w.-]{0,40}+)\]_(?!\w)")
_INTERPRETED = re.compile(r"(?<![`\w:])`([^`\n]{1,200})`(?![`_\w])")
_SUBSTITUTION = re.compile(r"\|([^|\s][^|\n]{0,80})\|_{0,2}")
_PROSE_ROLES = frozenset(
    "doc ref term abbr sup sub guilabel menuselection rfc pep emphasis strong title numref".split()  # noqa: SIM905
)


def has_markup(text: str) -> bool:
    return bool(_SIGNALS.search(text))


def to_markdown(text: str) -> str:
    """Return the text as Markdown, without comments, link targets and tables of contents."""
    lines = [line.rstrip().expandtabs(8) for line in text.split("\n")]
    written = _write_markdown(lines, [], 0)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(written)).strip("\n") + "\n"


def measure_heading(lines: Sequence[str], at: int) -> int:
    """Return how many lines the heading at line ``at`` has: 2 or 3; 0 if there is no heading."""
    if (at and lines[at - 1]) or at + 1 >= len(lines) or not lines[at]:
        return 0
    if ADORNMENT.fullmatch(lines[at]):
        has_title = at + 2 < len(lines) and lines[at + 2] == lines[at] and lines[at + 1].strip()
        if has_title and not ADORNMENT.fullmatch(lines[at + 1]):
            return 3 if _is_adornment_long_enough(lines[at], lines[at + 1].strip()) else 0
        return 0
    title = lines[at]
    if title[0].isspace() or not ADORNMENT.fullmatch(lines[at + 1]) or title.startswith((".. ", ">>> ")):
        return 0
    return 2 if _is_adornment_long_enough(lines[at + 1], title) else 0


def _is_adornment_long_enough(adornment: str, title: str) -> bool:
    return len(adornment) >= max(2, min(len(title) - 2, 60)) and bool(re.search(r"\w", title))


def _write_markdown(lines: Sequence[str], styles: list[tuple[str, bool]], depth: int) -> list[str]:
    if depth > _DEEPEST:
        return list(lines)
    written: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line:
            written.append("")
            at += 1
        elif not depth and (height := measure_heading(lines, at)):
            style = (lines[at + height - 1][0], height == 3)
            if style not in styles:
                styles.append(style)
            level = min(styles.index(style) + 1, 6)
            written += ["", f"{'#' * level} {_convert_inline(lines[at + height - 2].strip())}", ""]
            at += height
        elif line[0] == " ":
            end = _find_indented_block_end(lines, at)
            written += _write_markdown(_dedent(lines[at:end]), styles, depth + 1)
            at = end
        elif _EXPLICIT.match(line):
            end = _find_indented_block_end(lines, at + 1)
            written += ["", *_write_directive(line, lines[at + 1 : end], styles, depth), ""]
            at = end
        elif table := _read_table(lines, at):
            rows, at = table
            written += ["", write_markdown_table([_convert_inline(cell) for cell in row] for row in rows), ""]
        elif item := _ITEM.match(line):
            at = _write_item(lines, at, item, written, styles, depth)
        elif field := _FIELD.fullmatch(line):
            end = _find_indented_block_end(lines, at + 1)
            body = " ".join([field[2] or "", *filter(None, map(str.strip, lines[at + 1 : end]))]).strip()
            if body:
                written.append(f"- **{field[1]}**: {_convert_inline(body)}")
            at = end
        elif line.startswith(">>> "):
            end = next((below for below in range(at, len(lines)) if not lines[below]), len(lines))
            written += _write_code_block("python", lines[at:end])
            at = end
        elif line.startswith("__ "):
            at += 1
        else:
            at = _write_paragraph(lines, at, written, styles, depth)
    return written


def _write_paragraph(
    lines: Sequence[str], at: int, written: list[str], styles: list[tuple[str, bool]], depth: int
) -> int:
    end = at + 1
    while end < len(lines) and lines[end] and lines[end][0] != " ":
        end += 1
    paragraph = list(lines[at:end])
    below = _find_indented_block_end(lines, end)
    if end == at + 1 and end < len(lines) and lines[end] and not paragraph[0].endswith("::"):
        written += ["", f"**{_convert_inline(paragraph[0]).replace('**', '')}**", ""]
        written += [*_write_markdown(_dedent(lines[end:below]), styles, depth + 1), ""]
        return below
    is_code = paragraph[-1].endswith("::")
    if is_code:
        last = paragraph[-1].removesuffix("::")
        paragraph[-1] = f"{last}:" if last and not last.endswith((" ", "\t")) else last.rstrip()
    written += _convert_inline("\n".join(paragraph)).split("\n")
    if is_code and below > end:
        written += ["", *_write_code_block("", lines[end:below]), ""]
        return below
    return end


def _write_item(
    lines: Sequence[str], at: int, item: re.Match[str], written: list[str], styles: list[tuple[str, bool]], depth: int
) -> int:
    end = at + 1
    while end < len(lines) and (not lines[end] or lines[end][0] == " "):
        end += 1
    while not lines[end - 1]:
        end -= 1
    width = len(item[0])
    first = lines[at][width:]
    inner = [first, *(line[min(width, len(line) - len(line.lstrip())) :] for line in lines[at + 1 : end])]
    marker = item[1]
    if marker == "#.":
        before = next((re.match(r"(\d+)\. ", line) for line in reversed(written) if line[:1].strip()), None)
        marker = f"{int(before[1]) + 1}." if before else "1."
    elif not marker[0].isdigit():
        marker = "-" if len(marker) == 1 else f"- {marker}"
    body = _write_markdown(inner, styles, depth + 1)
    body = body[next((number for number, line in enumerate(body) if line), 0) :]
    pad = " " * (len(marker) + 1)
    written += [f"{marker} {body[0] if body else ''}".rstrip(), *(pad + line if line else "" for line in body[1:])]
    return end


def _write_directive(line: str, body: Sequence[str], styles: list[tuple[str, bool]], depth: int) -> list[str]:
    if footnote := _FOOTNOTE.match(line):
        label = _NOTE.sub(_convert_note, f"{footnote[1]}_")
        label += ":" if label.startswith("[^") else ""
        return [f"{label} {_convert_inline(' '.join([footnote[2], *map(str.strip, body)]))}".strip()]
    match = _DIRECTIVE.fullmatch(line)
    if not match:
        return []
    name, argument = match[1].rpartition(":")[2].lower(), (match[2] or "").strip()
    body = _dedent(body)
    options = 0
    while options < len(body) and _OPTION.match(body[options]):
        options += 1
    body = body[options:]
    kind = _DIRECTIVES.get(name, "signature")
    if kind == "hidden":
        return []
    if kind == "code":
        return _write_code_block(argument if re.fullmatch(r"[\w+-]{1,30}", argument) else "", body)
    lead: list[str] = []
    if name in _VERSIONS:
        version, _, rest = argument.partition(" ")
        lead = [f"**{_VERSIONS[name]} {version}.** {_convert_inline(rest)}".rstrip(), ""]
    elif kind == "note":
        word = "See also" if name == "seealso" else name.capitalize()
        lead = [f"**{word}:** {_convert_inline(argument)}".rstrip(), ""]
    elif argument and kind == "title":
        lead = [f"**{_convert_inline(argument)}**", ""]
    elif argument and kind in ("object", "signature"):
        is_section = kind == "object" and styles and body and not depth
        lead = [f"{'#' * min(len(styles) + 1, 6)} `{argument}`" if is_section else f"**`{argument}`**", ""]
    return [*lead, *_write_markdown(body, styles, depth + 1)]


def _read_table(lines: Sequence[str], at: int) -> tuple[list[list[str]], int] | None:
    """Return the table's rows, and the index of the line after it; None if no table is at line ``at``."""
    line = lines[at]
    if _GRID.fullmatch(line):
        end = at
        while end < len(lines) and lines[end][:1] in ("+", "|") and lines[end]:
            end += 1
        edges = sorted(
            {place for row in lines[at:end] if _GRID.fullmatch(row) for place, sign in enumerate(row) if sign == "+"}
        )
        return _read_cells(lines[at:end], edges), end
    if not _SIMPLE.fullmatch(line):
        return None
    end = next(
        (
            below + 1
            for below in range(at + 1, min(at + 500, len(lines)))
            if _SIMPLE.fullmatch(lines[below]) and (below + 1 == len(lines) or not lines[below + 1])
        ),
        0,
    )
    if not end:
        return None
    starts = [match.start() for match in re.finditer(r"=+", line)]
    rows: list[list[str]] = []
    for row in lines[at + 1 : end - 1]:
        if not row or _SIMPLE.fullmatch(row) or re.fullmatch(r"-+(?: +-+)*", row):
            continue
        cells = [row[begin:stop].strip() for begin, stop in zip(starts, [*starts[1:], None], strict=True)]
        if cells[0] or not rows:
            rows.append(cells)
        else:
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    return rows, end


def _read_cells(lines: Sequence[str], edges: Sequence[int]) -> list[list[str]]:
    rows: list[list[str]] = []
    begins = True
    for line in lines:
        if line.startswith("+"):
            begins = True
            continue
        columns = [edge for edge in edges if edge < len(line) and line[edge] == "|"]
        cells = [line[left + 1 : right].strip() for left, right in pairwise(columns)]
        if begins or not rows or len(rows[-1]) != len(cells):
            rows.append(cells)
        else:
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
        begins = False
    return [row for row in rows if row]


def _write_code_block(language: str, lines: Sequence[str]) -> list[str]:
    body = _dedent(lines)
    if not body:
        return []
    return [f"```{language}", *body, "```"]


def _find_indented_block_end(lines: Sequence[str], at: int) -> int:
    end = at
    for below in range(at, len(lines)):
        if lines[below]:
            if lines[below][0] != " ":
                break
            end = below + 1
    return end


def _dedent(lines: Sequence[str]) -> list[str]:
    inner = textwrap.dedent("\n".join(lines)).strip("\n")
    return inner.split("\n") if inner else []


def _convert_inline(text: str) -> str:
    parts: list[str] = []
    last = 0
    for literal in _LITERAL.finditer(text):
        parts += [_convert_markup_outside_literals(text[last : literal.start()]), _write_code(literal[1])]
        last = literal.end()
    return "".join([*parts, _convert_markup_outside_literals(text[last:])])


def _convert_markup_outside_literals(text: str) -> str:
    if not text.strip():
        return text
    text = _LINK.sub(lambda link: f"[{link[1]}]({link[2]})" if link[1] else f"<{link[2]}>", text)
    text = _NOTE.sub(_convert_note, text)
    text = _REFERENCE.sub(lambda match: match[1] or match[2], text)
    text = _INTERPRETED.sub(lambda match: f"*{match[1]}*" if " " in match[1] else f"`{match[1]}`", text)
    # The pattern above would match the result, so roles are converted afterwards.
    text = _ROLE.sub(_convert_role, text)
    text = _SUBSTITUTION.sub(r"\1", text)
    return text.replace("\\ ", "")


def _convert_note(match: re.Match[str]) -> str:
    blank, sign, name = match.groups()
    if not sign and not name.isdigit():
        return f"{blank}[{name}]"
    return f"[^{name}]" if name else ""


def _convert_role(match: re.Match[str]) -> str:
    name, content = match[1].rpartition(":")[2], " ".join(match[2].split())
    if titled := _TITLED.fullmatch(content):
        return titled[1].rstrip()
    if name in _PROSE_ROLES:
        return content.rstrip("/").rpartition("/")[2] if name == "doc" else content.replace("-->", "→")
    if content.startswith("~"):
        content = content.rpartition(".")[2]
    return _write_code(content.lstrip("!.~"))


def _write_code(content: str) -> str:
    fence = "``" if "`" in content else "`"
    return f"{fence}{content}{fence}"
