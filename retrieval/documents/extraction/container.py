"""Find words of an Office file, OpenDocument file or EPUB that are missing in its extracted text."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from lxml import etree

from retrieval.documents.extraction.archive import parse_xml
from retrieval.documents.extraction.completeness import find_lost_words
from retrieval.documents.extraction.decoding import decode
from retrieval.documents.extraction.html import parse_html
from retrieval.documents.extraction.office_xml import read_chart
from retrieval.text.extracted import ExtractedText, LeftOutParts, describe_left_out_parts

# The XML files that are compared. Cells of sheets are left out, because their text shows numbers in another form.
_PARTS = (
    (
        re.compile(r"content\.xml|word/(?:document|document2)\.xml|ppt/slides/[^/]+\.xml|xl/drawings/drawing\d+\.xml"),
        "words",
    ),
    (re.compile(r"ppt/notesSlides/[^/]+\.xml"), "notes"),
    (re.compile(r"word/(?:foot|end)notes\.xml"), "footnotes"),
    (re.compile(r"word/(?:header|footer)\d*\.xml"), "margins"),
    (re.compile(r"(?:word|ppt|xl)/charts/chart[^/]*\.xml"), "charts"),
    (re.compile(r"(?:word|ppt|xl)/diagrams/data\d*\.xml"), "diagrams"),
)
_PAGES = (".xhtml", ".html", ".htm")
_COMMENTS = re.compile(r"word/comments\.xml|ppt/comments/[^/]+\.xml")
_STYLES = "word/styles.xml"
_COUNTED = frozenset({"charts", "diagrams"})
_BLOCKS = frozenset(
    "e sub sup num den p h tr td th li pt title div br tab s line-break cell".split()  # noqa: SIM905
)
_UNSEEN = frozenset(
    """
    instrText delText del moveFrom Fallback tracked-changes table-of-content alphabetical-index script style head nav
    note-citation fld annotation sequence-decls formatCode f ext externalData number-style date-style
    binData settings desc event-listeners scripts font-face-decls
    """.split()  # noqa: SIM905
)
_OFFICE_TEXT = frozenset({"t", "v"})
_PLACEHOLDER = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}class"
_ODF_FURNITURE = frozenset({"page-number", "date-time", "header", "footer"})
_FURNITURE = frozenset({"dt", "ftr", "sldNum", "hdr"})


def find_left_out_content(data: bytes, extracted: ExtractedText) -> tuple[LeftOutParts, ...]:
    """Return one LeftOutParts for each kind of content that the extracted text lacks."""
    words: dict[str, list[str]] = defaultdict(list)
    counts: Counter[str] = Counter()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        is_office = "[Content_Types].xml" in archive.namelist()
        hiding_styles = _find_hiding_styles(parse_xml(archive.read(_STYLES))) if _STYLES in archive.namelist() else {}
        for entry in archive.namelist():
            if is_office and _COMMENTS.fullmatch(entry):
                comments = parse_xml(archive.read(entry)).iter(etree.Element)
                counts["comments"] += sum(etree.QName(each).localname in ("comment", "cm") for each in comments)
            kind = next((kind for pattern, kind in _PARTS if pattern.fullmatch(entry)), "")
            kind = "words" if entry.endswith(_PAGES) else kind
            if not kind:
                continue
            try:
                root = _parse(archive.read(entry), entry)
            except etree.XMLSyntaxError:
                counts["unreadable"] += 1
                continue
            found = _read_part_texts(root, is_office, hiding_styles)
            counts["comments"] += found.pop("comments", [""]).count("\x01")
            for own, pieces in found.items():
                if own == "words" and kind in _COUNTED:
                    shown = _read_chart_words(root) if kind == "charts" else ""
                    counts[kind] += _are_most_words_lost(shown or "".join(pieces), extracted.text)
                else:
                    words[kind if own == "words" else own].extend(pieces)
    return tuple(_list_left_out_parts(words, counts, extracted.text))


def _parse(data: bytes, entry: str) -> etree._Element:
    try:
        return parse_xml(data)
    except etree.XMLSyntaxError:
        root = parse_html(decode(data, entry, html=True), entry) if entry.endswith(_PAGES) else None
        if root is None:
            raise
        return root


def _list_left_out_parts(words: Mapping[str, list[str]], counts: Counter[str], text: str) -> Iterator[LeftOutParts]:
    for kind, pieces in words.items():
        said = "".join(pieces)
        lost = said.split() if kind in ("hidden", "struck") else find_lost_words(said, text)
        yield from describe_left_out_parts(kind, () if kind in ("hidden", "struck") else lost, len(lost))
    for kind, count in counts.items():
        yield from describe_left_out_parts(kind, (), count)


def _read_chart_words(root: etree._Element) -> str:
    title, rows = read_chart(root)
    return " ".join([title, *(words for row in rows for words in row)]) if rows else ""


def _are_most_words_lost(words: str, text: str) -> bool:
    return 2 * len(find_lost_words(words, text)) > len(words.split()) > 0


def _read_part_texts(root: etree._Element, is_office: bool, hiding_styles: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    unseen = hiding_styles or _find_hidden_or_struck_styles(root)
    if root.get("show") in ("0", "false"):
        return found
    walk = etree.iterwalk(root, events=("start", "end"))
    kinds = ["words"]
    for event, element in walk:
        if not isinstance(element.tag, str):
            continue
        local = etree.QName(element).localname
        if event == "start":
            if local == "annotation":
                found["comments"].append("\x01")
            if (
                local in _UNSEEN
                or _is_contents_or_placeholder(element, local)
                or (local == "page" and _find_hidden_or_struck_kind(element, local, unseen))
            ):
                walk.skip_subtree()
                kinds.append(kinds[-1])
                continue
            kinds.append(_find_hidden_or_struck_kind(element, local, unseen) or kinds[-1])
            if local in _BLOCKS:
                found[kinds[-1]].append(" ")
            if element.text and (not is_office or local in _OFFICE_TEXT):
                found[kinds[-1]].append(element.text)
        else:
            kinds.pop()
            if local in _BLOCKS:
                found[kinds[-1]].append(" ")
            if element.tail and not is_office:
                found[kinds[-1]].append(element.tail)
    return found


def _is_contents_or_placeholder(element: etree._Element, local: str) -> bool:
    # Links within the book are a table of contents, which repeats the headings.
    if local == "a" and "#" in (element.get("href") or ""):
        return True
    if local == "frame":
        return element.get(_PLACEHOLDER) in _ODF_FURNITURE
    if local == "sp":
        place = element.find(".//{*}nvPr/{*}ph")
        return place is not None and place.get("type") in _FURNITURE
    if local == "p":
        style = element.find("{*}pPr/{*}pStyle")
        return style is not None and any(value.upper().startswith("TOC") for value in style.attrib.values())
    return False


def _find_hiding_styles(root: etree._Element) -> dict[str, str]:
    found = [style for style in root.iter("{*}style") if style.find("{*}rPr/{*}vanish") is not None]
    return {style.get(f"{{{etree.QName(style).namespace}}}styleId", ""): "hidden" for style in found}


def _find_hidden_or_struck_styles(root: etree._Element) -> dict[str, str]:
    found: dict[str, str] = {}
    for style in root.iter("{urn:oasis:names:tc:opendocument:xmlns:style:1.0}style"):
        name = style.get(f"{{{etree.QName(style).namespace}}}name") or ""
        for properties in style.iterchildren("{*}text-properties", "{*}drawing-page-properties"):
            for attribute, value in properties.attrib.items():
                local = etree.QName(attribute).localname
                if (local, value) in (("display", "none"), ("visibility", "hidden")):
                    found[name] = "hidden"
                elif local == "text-line-through-style" and value != "none":
                    found[name] = "struck"
    return found


def _find_hidden_or_struck_kind(element: etree._Element, local: str, unseen: Mapping[str, str]) -> str:
    if local == "sp" and element.find("{*}nvSpPr/{*}cNvPr[@hidden='1']") is not None:
        return "hidden"
    if local in ("r", "p"):
        for properties in element.iterchildren("{*}rPr", "{*}pPr"):
            if properties.get("strike", "noStrike") != "noStrike":
                return "struck"
            for style in properties.iterchildren("{*}rStyle", "{*}pStyle") if unseen else ():
                if style.values()[0] in unseen:
                    return "hidden"
            for switch in properties.iterchildren("{*}vanish", "{*}strike", "{*}dstrike"):
                if not any(value in ("0", "false", "off") for value in switch.attrib.values()):
                    return "hidden" if etree.QName(switch).localname == "vanish" else "struck"
    if unseen and local in ("span", "p", "h", "page"):
        return next((unseen[value] for value in element.attrib.values() if value in unseen), "")
    return ""
