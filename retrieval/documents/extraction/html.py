"""HTML: the main text as Markdown, without navigation, scripts and what a reader cannot see."""

from __future__ import annotations

import re

import trafilatura
from lxml import etree

from retrieval.documents.extraction.decoding import canonical, decode
from retrieval.documents.extraction.markdown import with_structure
from retrieval.documents.extraction.writer import TableCell, spread, write_markdown_table
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, plain_title

# The main text must hold this share of the page's headings and code blocks, and of its letters outside links. Menus
# are links. Of manuals in HTML, trafilatura leaves out 10 to 38 %: notes, nested lists, captions.
_KEPT_SHARE, _KEPT_TEXT = 0.5, 0.9
_DROPPED = frozenset(
    ["script", "style", "noscript", "template", "svg", "iframe", "object", "select", "button", "input", "textarea"]
)
_FURNITURE = frozenset({"nav", "footer", "aside"})
# What DocBook, Sphinx and others call the ways to other pages.
_FURNITURE_CLASSES = frozenset(
    """
    toc navheader navfooter sphinxsidebar headerlink copiable-anchor copiable-link hash-link breadcrumb breadcrumbs
    """.split()  # noqa: SIM905
)
# "Previous:" and a bracket.
_LONGEST_LABEL = 12
# How a link says that it leads to the page before, the next one, or the one above.
_WAYS = frozenset({"prev", "previous", "next", "up", "start", "home", "contents", "index"})
_INVISIBLE_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])", re.I
)
_LISTS = frozenset({"ul", "ol", "dl", "div", "section", "table"})
# What DocBook calls the boxes that it lays out as tables.
_BOXES = frozenset({"note", "tip", "warning", "caution", "important"})
# Of a list whose definitions are all shorter and one paragraph each, every entry is one item.
_LONGEST_DEFINITION = 1_000
# A table of contents has so many entries, and hardly any words outside its links: numbers, its title.
_FEWEST_ENTRIES, _LINKED_SHARE = 3, 0.85
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    """
    address article blockquote body caption dd details div dl dt fieldset figcaption figure footer form header hr main
    ol p section summary ul
    """.split()  # noqa: SIM905
)
_HEADING_LINE = re.compile(r"^#{1,6} ", re.M)
_FENCE_LINE = re.compile(r"^`{3,}", re.M)
_ITEM_BEGINS = re.compile(r"\n *(?:-|\d+\.) \Z")
_NON_SPACE = re.compile(r"\S")
_BLANKS = re.compile(r"[ \t\r\n\f]+")


def extract_html(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    root = parse_html(decode(data, filename, html=True), filename)
    if root is None:
        raise DocumentRejected(f"{filename} holds no HTML elements: check the file and upload it again.")
    title = plain_title(root.findtext(".//title") or "")
    has_links = root.find(".//a") is not None
    _drop_invisible(root)
    _tidy(root)
    main = _find_main(root)
    visible = _to_markdown(main)
    text = _extract_main_text(root)
    if _count_letters(text) < _KEPT_TEXT * _count_unlinked(main) or _lacks_structure(text, visible):
        text = visible
    if not text.strip() and has_links:
        raise DocumentRejected(f"{filename} holds only links to other pages: it answers no question.")
    return with_structure(canonical(text).strip("\n") + "\n", title)


def parse_html(source: str, filename: str) -> etree._Element | None:
    """The root of the page, or None. Raises: DocumentRejected where the parser would lose words."""
    # Without huge_tree the parser leaves out what is nested in more than 255 levels, as unclosed tags soon are.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    root: etree._Element | None = etree.fromstring(source.encode(), parser)
    if any(entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log):
        # The parser stopped there, and what follows would be missing without a word.
        raise DocumentRejected(f"{filename} is nested more deeply than HTML can be read: save the page anew.")
    return root


def _drop_invisible(root: etree._Element) -> None:
    """Removes what a reader of the page does not see, as it may hold instructions meant for a model alone, and the ways
    to other pages."""
    for element in list(root.iter()):
        if not isinstance(element.tag, str):
            continue
        hidden = element.get("hidden") is not None or element.get("aria-hidden") == "true"
        hidden = hidden or element.get("role") == "navigation"
        # Within the main text, an aside is a note.
        is_note = element.tag == "aside" and next(element.iterancestors("main", "article"), None) is not None
        hidden = hidden or (element.tag in _FURNITURE and not is_note)
        hidden = hidden or not _FURNITURE_CLASSES.isdisjoint((element.get("class") or "").split())
        if hidden or element.tag in _DROPPED or _INVISIBLE_STYLE.search(element.get("style") or ""):
            _drop(element)


def _drop_contents(root: etree._Element) -> None:
    """Removes tables of contents, which hold the words of all sections and answer nothing: lists of links of which most
    lead to a heading. Before the first heading, any list of links is a menu."""
    letters: dict[etree._Element, int] = {}
    linked: dict[etree._Element, int] = {}
    links: dict[etree._Element, int] = {}
    elements = [element for element in root.iter() if isinstance(element.tag, str)]
    for element in reversed(elements):
        inner = [child for child in element if isinstance(child.tag, str)]
        letters[element] = _count_letters(element.text or "") + sum(
            letters[child] + _count_letters(child.tail or "") for child in inner
        )
        is_link = element.tag == "a" and element.get("href")
        linked[element] = letters[element] if is_link else sum(linked[child] for child in inner)
        links[element] = "#" in (element.get("href") or "") if is_link else sum(links[child] for child in inner)
    dropped: set[etree._Element] = set()
    is_before_headings = any(element.tag in _HEADINGS for element in elements)
    for element in elements:
        is_before_headings = is_before_headings and element.tag not in _HEADINGS
        if element.getparent() in dropped:
            dropped.add(element)
        elif element.tag in _LISTS and linked[element] >= _LINKED_SHARE * letters[element]:
            entries = sum(1 for _ in element.iter("a")) if is_before_headings else links[element]
            if entries >= _FEWEST_ENTRIES:
                dropped.add(element)
                _drop(element)


def _drop_ways(root: etree._Element) -> None:
    """Removes the lines that lead to the next page and the one before."""
    for link in list(root.iter("a")):
        if link.get("accesskey") or not _WAYS.isdisjoint((link.get("rel") or "").lower().split()):
            line = next(link.iterancestors("p", "li", "td", "th", "div"), None)
            if line is not None and _count_unlinked(line) <= _LONGEST_LABEL * len(list(line.iter("a"))):
                _drop(line)


def _tidy(root: etree._Element) -> None:
    """Drops what answers nothing, and writes anew what Markdown has no form for."""
    _join_lines(root)
    _drop_contents(root)
    _drop_ways(root)
    _open_boxes(root)
    _write_definitions(root)
    _spread_tables(root)


def _join_lines(root: etree._Element) -> None:
    """White space becomes one blank, as a browser shows it, but in a ``pre``. In code within a sentence, trafilatura
    would take a line's end for the sign of a block of code.
    """
    kept = {part for pre in root.iter("pre") for part in pre.iter()}
    for element in root.iter():
        if element.text and element not in kept:
            element.text = _BLANKS.sub(" ", element.text)
        if element.tail and element.getparent() not in kept:
            element.tail = _BLANKS.sub(" ", element.tail)


def _open_boxes(root: etree._Element) -> None:
    """Turns tables that only lay out a note or a page into blocks of text."""
    for table in list(root.iter("table")):
        parent = table.getparent()
        classes = (parent.get("class") or "").split() if parent is not None else ()
        if table.get("role") in ("presentation", "none") or not _BOXES.isdisjoint(classes):
            for part in table.iter("table", "tbody", "tr", "td", "th"):
                if part.tag == "th":
                    _end_with_colon(part)
                part.tag = "div"


def _write_definitions(root: etree._Element) -> None:
    """Turns each list of definitions into items "term: definition", or into paragraphs if a definition is long."""
    for definitions in list(root.iter("dl")):
        entries = [entry for entry in definitions if entry.tag in ("dt", "dd")]
        is_short = all(map(_fits_an_item, entries))
        definitions.tag = "ul" if is_short else "div"
        item = before = None
        for entry in entries:
            is_term, follows_term, before = entry.tag == "dt", before == "dt", entry.tag
            if is_term:
                _end_with_colon(entry)
            if not is_short:
                entry.tag = "p" if is_term else "div"
                continue
            if item is None or (is_term and not follows_term):
                item = etree.Element("li")
                entry.addprevious(item)
            for part in [entry, *entry.iter("p")]:
                part.tag = "span"
            entry.tail = " "
            item.append(entry)


def _fits_an_item(entry: etree._Element) -> bool:
    blocks = [part.tag for part in entry.iterdescendants() if part.tag in _BLOCKS or part.tag in ("pre", "table")]
    return len(_flatten(entry)) <= _LONGEST_DEFINITION and blocks in ([], ["p"])


def _end_with_colon(element: etree._Element) -> None:
    """Adds a colon, unless the text ends with a sign."""
    text = "".join(map(str, element.itertext())).rstrip()
    if not (text[-1:].isalnum() or text[-1:] in ")]\"'`"):
        return
    while len(element) and not (element[-1].tail or "").strip():
        element = element[-1]
    if len(element):
        element[-1].tail = f"{(element[-1].tail or '').rstrip()}:"
    else:
        element.text = f"{(element.text or '').rstrip()}:"


def _spread_tables(root: etree._Element) -> None:
    """Writes tables with merged cells anew, each cell in its column."""
    for table in list(root.iter("table")):
        cells = [[cell for cell in row if cell.tag in ("td", "th")] for row in table.iter("tr")]
        if len(list(table.iter("table"))) > 1 or not any(
            cell.get("colspan") or cell.get("rowspan") for row in cells for cell in row
        ):
            continue
        rows = [
            [TableCell(_flatten(cell), _read_span(cell, "colspan"), _read_span(cell, "rowspan")) for cell in row]
            for row in cells
        ]
        for child in list(table):
            if child.tag != "caption":
                table.remove(child)
        for at, texts in enumerate(spread(rows)):
            row = etree.SubElement(table, "tr")
            for text in texts:
                etree.SubElement(row, "th" if at == 0 else "td").text = text


def _read_span(cell: etree._Element, name: str) -> int:
    value = cell.get(name) or ""
    return int(value) if value.isdecimal() and len(value) <= 4 else 1


def _drop(element: etree._Element) -> None:
    """Takes ``element`` out of its tree and leaves the text that follows it."""
    parent, before, tail = element.getparent(), element.getprevious(), element.tail or ""
    if parent is None:
        return
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _extract_main_text(root: etree._Element) -> str:
    """The main text as trafilatura finds it, or empty."""
    return (
        trafilatura.extract(
            etree.tostring(root, encoding="unicode", method="html"),
            output_format="markdown",
            include_formatting=True,
            include_comments=False,
            include_tables=True,
            favor_recall=True,
        )
        or ""
    )


def _lacks_structure(text: str, visible: str) -> bool:
    """Whether the main text lost most headings or code blocks of the page."""
    return any(
        len(mark.findall(text)) < _KEPT_SHARE * len(mark.findall(visible)) for mark in (_HEADING_LINE, _FENCE_LINE)
    )


def _count_unlinked(root: etree._Element) -> int:
    """The letters of a page outside links."""
    linked = sum(_count_letters(_flatten(link)) for link in root.iter("a"))
    return _count_letters(_flatten(root)) - linked


def convert_html(root: etree._Element) -> str:
    """All that a reader of the page sees, but for its navigation and footer, as canonical Markdown."""
    _drop_invisible(root)
    _tidy(root)
    return canonical(_to_markdown(root)).strip("\n")


def _find_main(root: etree._Element) -> etree._Element:
    """The page's only ``main`` or ``article`` element, if most of the text is in it; else the whole page."""
    for tag in ("main", "article"):
        found = list(root.iter(tag))
        if len(found) == 1 and _count_letters(_flatten(found[0])) >= _KEPT_SHARE * _count_letters(_flatten(root)):
            return found[0]
    return root


def _count_letters(text: str) -> int:
    return len(_NON_SPACE.findall(text))


def _to_markdown(root: etree._Element) -> str:
    """All visible text but navigation and footers, in order, as Markdown."""
    parts: list[str] = []
    _write(root, parts)
    text = "\n".join(line.rstrip(" \t") for line in "".join(parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"^( *(?:-|\d+\.) .*)\n\n+(?= *(?:-|\d+\.) )", r"\1\n", text, flags=re.M))


def _write(element: etree._Element, parts: list[str]) -> None:
    tag = element.tag
    if not isinstance(tag, str) or tag == "head":
        return
    if tag in _HEADINGS:
        parts.append(f"\n\n{'#' * _HEADINGS[tag]} {_flatten(element)}\n\n")
    elif tag == "pre":
        code = "".join(map(str, element.itertext())).strip("\n")
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
        parts.append(f"\n\n{fence}\n{code}\n{fence}\n\n")
    elif tag == "table":
        rows = ([_flatten(cell) for cell in row if cell.tag in ("td", "th")] for row in element.iter("tr"))
        parts.append(f"\n\n{write_markdown_table(rows)}\n\n")
    elif tag == "br":
        parts.append("\n")
    elif tag in ("code", "kbd", "samp"):
        words = _flatten(element)
        _add(parts, f"`{words}`" if words and "`" not in words else words)
    else:
        edge = "\n\n" if tag in _BLOCKS and not _ITEM_BEGINS.search("".join(parts[-3:])) else ""
        _add(parts, f"\n{_item_sign(element)} " if tag == "li" else edge)
        _write_words(element.text, parts)
        for child in element:
            _write(child, parts)
            _write_words(child.tail, parts)
        _add(parts, "\n\n" if tag in _BLOCKS else "")


def _item_sign(item: etree._Element) -> str:
    """The sign of a list item, indented by the items around it."""
    parent = item.getparent()
    number = 1 + sum(1 for _ in item.itersiblings("li", preceding=True))
    sign = f"{number}." if parent is not None and parent.tag == "ol" else "-"
    return "   " * sum(1 for _ in item.iterancestors("li")) + sign


def _write_words(text: str | None, parts: list[str]) -> None:
    words = re.sub(r"\s+", " ", text or "")
    if not parts or parts[-1][-1] in "\n ":
        words = words.lstrip()
    _add(parts, words)


def _add(parts: list[str], words: str) -> None:
    """Adds ``words``, unless there are none: the last part always has a last character."""
    if words:
        parts.append(words)


def _flatten(element: etree._Element) -> str:
    return " ".join(" ".join(map(str, element.itertext())).split())
