"""Add list numbers, formulas, charts, form fields and superscripts to OpenDocument paragraphs as text."""

from __future__ import annotations

import copy
import posixpath
import zipfile
from collections.abc import Sequence

from lxml import etree

from retrieval.documents.extraction.archive import parse_xml
from retrieval.documents.extraction.numbering import format_list_number
from retrieval.documents.extraction.office_xml import write_subscript, write_superscript
from retrieval.documents.extraction.opendocument_sheet import Element, qualify_name

_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}


class OpenDocumentNumbering:
    """Counts an OpenDocument text's numbered headings and list items.

    Source: OpenDocument 1.3 part 3, 16.35 and 19.498.
    """

    def __init__(self, roots: Sequence[Element]) -> None:
        self._levels: dict[str, dict[int, Element]] = {}
        for root in roots:
            for style in root.iter(qualify_name("text:outline-style"), qualify_name("text:list-style")):
                is_outline = style.tag == qualify_name("text:outline-style")
                levels = {
                    int(level.get(qualify_name("text:level")) or 1): level
                    for level in style
                    if isinstance(level.tag, str)
                }
                self._levels.setdefault("" if is_outline else style.get(qualify_name("style:name")) or "", levels)
        self._counts: dict[str, dict[int, int]] = {}

    def restart_numbering(self, style: str) -> None:
        self._counts.pop(style, None)

    def count_heading(self, level: int) -> str:
        return self.count("", level)

    def count(self, style: str, level: int, start: str | None = None) -> str:
        """Return the text of the next item's number in a list of this style at ``level``; empty for a bullet.

        ``start`` is the number that the file sets for this item; None continues the count. Deeper levels begin again.
        """
        levels = self._levels.get(style, {})
        counts = self._counts.setdefault(style, {})
        before = counts.get(level, int(self._read_attribute(levels, level, "text:start-value") or 1) - 1)
        counts[level] = int(start) if start and start.isdecimal() else before + 1
        for deeper in [each for each in counts if each > level]:
            del counts[deeper]
        if not self._read_attribute(levels, level, "style:num-format"):
            return ""
        shown = int(self._read_attribute(levels, level, "text:display-levels") or 1)
        parts = [
            format_list_number(counts.get(at, 1), _FORMS.get(form, form))
            for at in range(max(1, level - shown + 1), level + 1)
            if (form := self._read_attribute(levels, at, "style:num-format"))
        ]
        prefix, suffix = (self._read_attribute(levels, level, f"style:num-{end}") for end in ("prefix", "suffix"))
        return f"{prefix}{'.'.join(parts)}{suffix}".strip()

    @staticmethod
    def _read_attribute(levels: dict[int, Element], level: int, attribute: str) -> str:
        return (levels[level].get(qualify_name(attribute)) or "") if level in levels else ""


def add_generated_text(root: Element, archive: zipfile.ZipFile) -> None:
    """Add text for formulas, charts and form fields to the document, and remove hidden text."""
    raised, lowered, unseen = _find_styles(root)
    for element in list(root.iter(qualify_name("text:span"), qualify_name("text:p"), qualify_name("text:h"))):
        if element.get(qualify_name("text:style-name")) in unseen:
            _replace_with_span(element, "")
    for section in list(root.iter(qualify_name("text:section"))):
        display = section.get(qualify_name("text:display"))
        is_hidden = display == "condition" and section.get(qualify_name("text:is-hidden")) == "true"
        if display == "none" or is_hidden:
            _replace_with_span(section, "")
    for hidden in list(root.iter(qualify_name("text:hidden-text"))):
        _replace_with_span(hidden, "")
    for hidden in list(root.iter(qualify_name("text:hidden-paragraph"))):
        if hidden.get(qualify_name("text:is-hidden")) == "true":
            _replace_with_span(next(hidden.iterancestors(qualify_name("text:p"), qualify_name("text:h"))), "")
    controls = {
        control.get(qualify_name("form:id")) or control.get(qualify_name("xml:id")): control
        for forms in root.iter(qualify_name("office:forms"))
        for control in forms.iter(etree.Element)
    }
    for place in list(root.iter(qualify_name("draw:control"))):
        control = controls.get(place.get(qualify_name("draw:control")))
        _replace_with_span(place, _read_control(control) if control is not None else "")
    for place in list(root.iter(qualify_name("draw:object"))):
        _inline_embedded_object(place, archive)
    for paragraph in root.iter(qualify_name("text:p"), qualify_name("text:h")):
        _mark_superscripts(paragraph, raised, lowered)


def _find_styles(root: Element) -> tuple[set[str | None], set[str | None], set[str | None]]:
    raised: set[str | None] = set()
    lowered: set[str | None] = set()
    unseen: set[str | None] = set()
    for style in root.iter(qualify_name("style:style")):
        for properties in style.iterchildren(qualify_name("style:text-properties")):
            position = properties.get(qualify_name("style:text-position")) or ""
            is_struck = (properties.get(qualify_name("style:text-line-through-style")) or "none") != "none"
            if is_struck or properties.get(qualify_name("text:display")) == "none":
                unseen.add(style.get(qualify_name("style:name")))
            elif position.startswith(("super", "1", "2", "3", "4", "5")):
                raised.add(style.get(qualify_name("style:name")))
            elif position.startswith(("sub", "-")):
                lowered.add(style.get(qualify_name("style:name")))
    return raised, lowered, unseen


def _read_control(control: Element) -> str:
    label = control.get(qualify_name("form:label")) or ""
    local = etree.QName(control).localname
    if local in ("checkbox", "radio"):
        state = control.get(qualify_name("form:current-state")) or control.get(qualify_name("form:current-selected"))
        return f"{'☒' if state in ('checked', 'true') else '☐'} {label}".strip()
    if local == "listbox":
        chosen = [each for each in control if each.get(qualify_name("form:current-selected")) == "true"]
        return ", ".join(each.get(qualify_name("form:label")) or "" for each in chosen)
    return control.get(qualify_name("form:current-value")) or control.get(qualify_name("form:value")) or label


def _inline_embedded_object(place: Element, archive: zipfile.ZipFile) -> None:
    path = posixpath.normpath(f"{place.get(qualify_name('xlink:href')) or ''}/content.xml")
    if path not in archive.namelist():
        return
    root = parse_xml(archive.read(path))
    if root.tag == qualify_name("math:math"):
        note = next(root.iter(qualify_name("math:annotation")), None)
        words = note.text if note is not None else " ".join(map(str, root.itertext()))
        _replace_with_span(place, f" {' '.join((words or '').split())} ")
    elif root.find(f".//{qualify_name('office:chart')}") is not None:
        anchor = next(place.iterancestors(qualify_name("text:p")), None)
        anchor = next(place.iterancestors(qualify_name("draw:frame")), place) if anchor is None else anchor
        for table in reversed(list(root.iter(qualify_name("table:table")))):
            anchor.addnext(copy.deepcopy(table))


def _replace_with_span(element: Element, words: str) -> None:
    parent = element.getparent()
    if parent is not None:
        span = etree.Element(qualify_name("text:span"))
        span.text, span.tail = words, element.tail
        parent.replace(element, span)


def _mark_superscripts(paragraph: Element, raised: set[str | None], lowered: set[str | None]) -> None:
    if not raised and not lowered:
        return
    before = ""
    for event, element in etree.iterwalk(paragraph, events=("start", "end")):
        if event == "end":
            before += element.tail or "" if element is not paragraph else ""
            continue
        style = element.get(qualify_name("text:style-name")) if element.tag == qualify_name("text:span") else None
        if style in raised and element.text:
            element.text = write_superscript(before, element.text)
        elif style in lowered and element.text:
            element.text = write_subscript(before, element.text)
        before += element.text or ""
