"""Decide which elements of an HTML page a reader can see, at once or after pressing a control.

Other text is not extracted, because it may give orders to a language model.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from lxml import etree

from retrieval.text.instructions import find_instructions

HEADINGS = {f"h{level}": level for level in range(1, 7)}
_COLLAPSED_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_UNREADABLE_STYLE = re.compile(r"font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])", re.I)
_ROLES = frozenset(("button", "tab", "link", "treeitem", "menuitem"))
_TARGETS = re.compile(r"aria-controls|aria-owns|popovertarget|commandfor|onclick|uk-toggle|data-[\w-]+")
_SEPARATOR = re.compile(r"[^\w.:-]+")
_WORD = re.compile(r"\w")
_QUESTION = re.compile(r"accordion|question|faq|toggle|trigger|collaps|expand", re.I)
# At most this many rounds open controls. Each round can show further controls.
_MOST_ROUNDS = 5
# A shorter text before a hidden element may be a question, and the element the answer.
_LONGEST_QUESTION = 300


def text_of(element: etree._Element) -> str:
    return " ".join(" ".join(map(str, element.itertext())).split())


def is_hidden(element: etree._Element) -> bool:
    style = element.get("style") or ""
    return (
        element.get("hidden") not in (None, "until-found")
        or element.get("aria-hidden") == "true"
        or element.get("popover") is not None
        or (element.tag == "dialog" and element.get("open") is None)
        or bool(_COLLAPSED_STYLE.search(style) or _UNREADABLE_STYLE.search(style))
    )


def find_collapsible_elements(root: etree._Element) -> dict[etree._Element, etree._Element]:
    """Return each hidden element that a reader can open, with the visible control that opens it.

    Elements that give orders to a language model are left out.
    """
    elements = [element for element in root.iter() if isinstance(element.tag, str)]
    # ``within`` maps each element to the innermost hidden element that is or contains it. ``around`` maps each hidden
    # element to the innermost other one that contains it. None means that there is none.
    within: dict[etree._Element, etree._Element | None] = {}
    around: dict[etree._Element, etree._Element | None] = {}
    for element in elements:
        parent = element.getparent()
        above = within.get(parent) if parent is not None else None
        if is_hidden(element):
            around[element] = above
            above = element
        within[element] = above
    candidates = {each for each in around if not _UNREADABLE_STYLE.search(each.get("style") or "")}
    if not candidates:
        return {}
    ways = list(_pair_controls_with_opened_elements(elements, candidates))
    opened: dict[etree._Element, etree._Element] = {}
    shown: set[etree._Element | None] = {None}
    for _round in range(_MOST_ROUNDS):
        before = len(opened)
        for control, target in ways:
            if target not in opened and within[control] in shown and not find_instructions(text_of(target)):
                opened[target] = control
        for each, above in around.items():
            if each in opened and above in shown:
                shown.add(each)
        if len(opened) == before:
            break
    return {each: control for each, control in opened.items() if each in shown}


def _pair_controls_with_opened_elements(
    elements: Iterable[etree._Element], candidates: set[etree._Element]
) -> Iterator[tuple[etree._Element, etree._Element]]:
    named: dict[str, list[etree._Element]] = defaultdict(list)
    for element in elements:
        for name in filter(None, (element.get("id"), element.get("aria-labelledby"))):
            named[name] += [each for each in ([element] if element in candidates else element) if each in candidates]
    for element in elements:
        if is_clickable(element) and has_text_or_icon(element):
            names = {element.get("id") or ""}
            for attribute, value in element.items():
                if _TARGETS.fullmatch(attribute) or (attribute == "href" and value.startswith("#")):
                    names.update(_SEPARATOR.split(value))
            for name in names:
                for target in named.get(name, ()):
                    if element is not target:
                        yield element, target
    forms: Counter[tuple[str, str, str]] = Counter()
    headed: list[tuple[tuple[str, str, str], etree._Element, etree._Element]] = []
    for target in candidates:
        before = target.itersiblings(etree.Element, preceding=True)
        question = next((each for each in before if each.tag not in ("br", "hr", "script", "style")), None)
        if question is None or not 0 < len(text_of(question)) < _LONGEST_QUESTION:
            continue
        if any(is_clickable(each) and not _is_followable_link(each) for each in question.iter(etree.Element)):
            yield question, target
        elif question.tag in HEADINGS or question.tag == "dt" or _QUESTION.search(question.get("class") or ""):
            form = str(question.tag), str(target.tag), target.get("class") or ""
            forms[form] += 1
            headed.append((form, question, target))
    yield from ((question, target) for form, question, target in headed if forms[form] > 1)


def is_clickable(element: etree._Element) -> bool:
    return (
        element.tag in ("button", "summary", "a")
        or element.get("role") in _ROLES
        or element.get("aria-expanded") is not None
        or any("click" in name or "toggle" in name for name in element.attrib)
    )


def has_text_or_icon(element: etree._Element) -> bool:
    return bool(text_of(element)) or any(True for _ in element.iter("img", "svg", "i"))


def _is_followable_link(element: etree._Element) -> bool:
    address = element.get("href") or ""
    return element.tag == "a" and not (address in ("", "#") or address.lower().startswith("javascript:"))
