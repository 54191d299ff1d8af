"""Read charts, diagrams, equations and superscripts of Word and PowerPoint."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from lxml import etree

from retrieval.documents.extraction.archive import MemberCollector
from retrieval.documents.extraction.number_formats import show_value
from retrieval.text.extracted import ExtractionLimits
from retrieval.text.word_lists import fill_in

Element = etree._Element

_TYPES = "[Content_Types].xml"
# Content types that the libraries refuse: templates, slide shows and files with macros.
_VARIANT = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.|ms-)"
    rb"(word|excel|powerpoint|wordprocessingml|spreadsheetml|presentationml)"
    rb"\.(?:document|template|sheet|addin|slideshow|presentation)(?:\.macroEnabled(?:Template)?)?\.main\+xml"
)
_PLAIN_TYPES = {
    b"word": b"wordprocessingml.document",
    b"exce": b"spreadsheetml.sheet",
    b"powe": b"presentationml.presentation",
    b"spre": b"spreadsheetml.sheet",
    b"pres": b"presentationml.presentation",
}
# Strict OOXML (ISO 29500) has other namespaces, which the libraries cannot read.
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/([a-zA-Z]+)/([a-zA-Z]+)")
_STRICT_MARK = b"http://purl.oclc.org/ooxml/"
_OTHER_WORDS = {b"extendedProperties": b"extended-properties", b"customProperties": b"custom-properties"}


def normalise_office_file(data: bytes) -> bytes:
    """Return the file without the variants of content types and namespaces that the libraries refuse."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        types = archive.read(_TYPES)
        plain = _VARIANT.sub(
            lambda match: (
                b"application/vnd.openxmlformats-officedocument.%b.main+xml"
                % _PLAIN_TYPES.get(match[1][:4], _PLAIN_TYPES[b"word"])
            ),
            types,
        )
        is_strict = any(_STRICT_MARK in archive.read(name) for name in archive.namelist() if name == "_rels/.rels")
        if plain == types and not is_strict:
            return data
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as written:
            for entry in archive.infolist():
                body = plain if entry.filename == _TYPES else archive.read(entry)
                if is_strict and entry.filename.endswith((".xml", ".rels")):
                    body = _STRICT.sub(
                        lambda match: (
                            b"http://schemas.openxmlformats.org/%b/2006/%b"
                            % (match[1], _OTHER_WORDS.get(match[2], match[2]))
                        ),
                        body,
                    )
                written.writestr(entry.filename, body)
        return out.getvalue()


_NAMESPACES = {
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "dgm": "http://schemas.openxmlformats.org/drawingml/2006/diagram",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "v": "urn:schemas-microsoft-com:vml",
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
}


def qualify_name(prefixed: str) -> str:
    prefix, _, local = prefixed.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


def resolve_alternate_content(root: Element) -> None:
    """Remove the fallbacks of AlternateContent elements, which repeat the words of the first choice."""
    for alternative in list(root.iter(qualify_name("mc:AlternateContent"))):
        choice = alternative.find(qualify_name("mc:Choice"))
        # For an emoji, only the element mc:Fallback contains the character; mc:Choice has its code in an attribute.
        is_code = choice is not None and "w16se" in choice.get("Requires", "")
        choice = (
            alternative.find(qualify_name("mc:Fallback")) if choice is None or is_code or not len(choice) else choice
        )
        for child in list(choice) if choice is not None else ():
            alternative.addprevious(child)
        _remove(alternative)


def _remove(element: Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


_PAGE_NUMBER = re.compile(fill_in(r"(?:<page_count>|[\d\s/-])++", "documents"), re.I)


def is_blank_or_page_number(words: str) -> bool:
    """Return whether a line has no words, or only a page number."""
    return sum(map(str.isalpha, words)) < 2 or bool(_PAGE_NUMBER.fullmatch(words))


# A description of a picture that contains one of these words was written by a program.
_MADE_UP = re.compile(r"\b(?:KI|AI|IA)[- ]?(?:gener|gegener|généré)|automati(?:sch|cally|camente)|generated", re.I)
_FILE_NAME = re.compile(r"\S+\.\w{2,5}")
_FEWEST_WORDS = 3


def describe_picture(description: str | None) -> str:
    """Return a line of text for a picture's description; empty if the author did not write one."""
    words = " ".join((description or "").split())
    if len(words.split()) < _FEWEST_WORDS or _MADE_UP.search(words) or _FILE_NAME.fullmatch(words):
        return ""
    return f"[Picture: {words}]"


def collect_embedded_files(parts: Iterable[Any], filename: str, limits: ExtractionLimits) -> MemberCollector:
    """Return the files that are embedded in the document."""
    members = MemberCollector(filename, limits)
    seen: set[str] = set()
    for part in parts:
        for relation in part.rels.values():
            kind = relation.reltype.rsplit("/", 1)[-1]
            if relation.is_external or kind not in ("package", "oleObject"):
                continue
            path = str(relation.target_part.partname)
            if path in seen:
                continue
            seen.add(path)
            label = path.rsplit("/", 1)[-1]
            if kind == "package":
                members.add(label, relation.target_part.blob)
            else:
                members.leave_out("embedded", label)
    return members


def read_chart(root: Element) -> tuple[str, list[list[str]]]:
    """Return a chart's title and its values as a table, with a row for each category."""
    titles = (
        "".join(text.text or "" for text in found.iter(qualify_name("a:t")))
        for found in root.iter(qualify_name("c:title"))
    )
    title = " – ".join(filter(None, (" ".join(each.split()) for each in titles)))
    columns: list[tuple[str, dict[int, str]]] = []
    names: dict[int, str] = {}
    for series in root.iter(qualify_name("c:ser")):
        said = _read_chart_points(series.find(qualify_name("c:tx")))
        own = _read_chart_points(_find_first_child(series, "c:cat", "c:xVal"))
        values = _read_chart_points(_find_first_child(series, "c:val", "c:yVal"))
        for at, size in _read_chart_points(series.find(qualify_name("c:bubbleSize"))).items():
            values[at] = f"{values.get(at, '')} (size {size})"
        if series.find(qualify_name("c:xVal")) is not None and any(
            names.get(at, words) != words for at, words in own.items()
        ):
            behind = max(names) + 1
            own, values = ({behind + at: words for at, words in each.items()} for each in (own, values))
        names = {**own, **names}
        columns.append((" ".join(said.values()), values))
    rows = sorted({at for _, values in columns for at in values} | set(names))
    header = ["", *(label or f"series {at}" for at, (label, _) in enumerate(columns, start=1))]
    table = [[names.get(row, str(row + 1)), *(values.get(row, "") for _, values in columns)] for row in rows]
    return title, [header, *table] if table else []


def _find_first_child(element: Element, *names: str) -> Element | None:
    return next((found for each in names if (found := element.find(qualify_name(each))) is not None), None)


def _read_chart_points(element: Element | None) -> dict[int, str]:
    found: dict[int, str] = {}
    if element is None:
        return found
    points = list(element.iter(qualify_name("c:pt")))
    shape = element.findtext(f".//{qualify_name('c:formatCode')}") or ""
    for point in points:
        index = point.get("idx") or ""
        words = point.findtext(qualify_name("c:v")) or ""
        with suppress(ValueError):
            words = show_value(float(words), own) if (own := point.get("formatCode") or shape) else words
        if index.isdecimal() and words:
            at = int(index)
            found[at] = f"{words} {found[at]}" if at in found else words
    if not points and (alone := element.findtext(qualify_name("c:v"))):
        found[0] = alone
    return found


def read_diagram(root: Element) -> Iterator[str]:
    for point in root.iter(qualify_name("dgm:pt")):
        if point.get("type") in (None, "node", "asst"):
            for paragraph in point.iter(qualify_name("a:p")):
                if words := "".join(text.text or "" for text in paragraph.iter(qualify_name("a:t"))).strip():
                    yield words


_NUMBER = re.compile(r"[-−+]?\d+(?:[.,]\d+)*")
_ORDINALS = frozenset("st nd rd th e er re de ste eme ème o a º ª".split())  # noqa: SIM905


def write_superscript(before: str, words: str) -> str:
    """Return superscript ``words`` as plain text: 10^6, $320^1, Total^a, but 1st, Acme™."""
    mark = words.strip()
    if not mark or not before.strip() or before[-1].isspace():
        return words
    if before[-1].isdigit():
        return words if mark.casefold() in _ORDINALS or (not mark[0].isalnum() and len(mark) == 1) else f"^{words}"
    return f"^{words}" if _NUMBER.fullmatch(mark) or (len(mark) == 1 and mark.isalnum()) else words


def write_subscript(before: str, words: str) -> str:
    """Return subscript ``words`` as plain text. An underscore separates digits from digits: 10_2, but H2O."""
    return f"_{words}" if before[-1:].isdigit() and words[:1].isdigit() else words


def write_equation(element: Element) -> str:
    """Return an equation (OMML) as one line of text: a/b, x^2, x_i, √(x)."""
    return "".join(_write_math(element)).strip()


def _write_math(element: Element) -> Iterator[str]:
    local = etree.QName(element).localname if isinstance(element.tag, str) else ""
    if local == "t":
        yield element.text or ""
        return

    def write_child(name: str) -> str:
        found = element.find(qualify_name(f"m:{name}"))
        return "".join(_write_math(found)).strip() if found is not None else ""

    def add_brackets(words: str) -> str:
        return words if len(words) < 2 or words.isalnum() or (words[0] == "(" and words[-1] == ")") else f"({words})"

    match local:
        case "f":
            kind = element.find(f"{qualify_name('m:fPr')}/{qualify_name('m:type')}")
            sign = ", " if kind is not None and kind.get(qualify_name("m:val")) == "noBar" else "/"
            yield f"{add_brackets(write_child('num'))}{sign}{add_brackets(write_child('den'))}"
        case "sSup":
            yield f"{add_brackets(write_child('e'))}^{add_brackets(write_child('sup'))}"
        case "sSub":
            yield f"{add_brackets(write_child('e'))}_{add_brackets(write_child('sub'))}"
        case "limLow" | "limUpp":
            sign = "_" if local == "limLow" else "^"
            yield f"{add_brackets(write_child('e'))}{sign}{add_brackets(write_child('lim'))}"
        case "sPre":
            yield f"_{add_brackets(write_child('sub'))}^{add_brackets(write_child('sup'))} {write_child('e')}"
        case "m" | "eqArr":
            rows = (
                [*row] if local == "m" else [row]
                for row in element.iterchildren(qualify_name("m:mr"), qualify_name("m:e"))
            )
            yield "; ".join(", ".join(map(write_equation, row)) for row in rows)
        case "sSubSup":
            below, above = add_brackets(write_child("sub")), add_brackets(write_child("sup"))
            yield f"{add_brackets(write_child('e'))}_{below}^{above}"
        case "rad":
            yield f"{write_child('deg')}√{add_brackets(write_child('e'))}"
        case "nary":
            chosen = element.find(f"{qualify_name('m:naryPr')}/{qualify_name('m:chr')}")
            limits = "".join(
                f"{mark}{add_brackets(words)}"
                for mark, words in (("_", write_child("sub")), ("^", write_child("sup")))
                if words
            )
            yield f"{chosen.get(qualify_name('m:val')) if chosen is not None else '∫'}{limits} {write_child('e')}"
        case "d":
            marks = {
                etree.QName(each).localname: each.get(qualify_name("m:val")) for each in element.iterfind("{*}dPr/*")
            }
            inside = ", ".join(map(write_equation, element.iterchildren(qualify_name("m:e"))))
            yield f"{marks.get('begChr', '(')}{inside}{marks.get('endChr', ')')}"
        case "func":
            yield f"{write_child('fName')} {add_brackets(write_child('e'))}"
        case "rPr" | "ctrlPr":
            return
        case _:
            for child in element:
                yield from _write_math(child)
