"""HTML: what a reader sees of a page, as Markdown, without navigation, footers and scripts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from urllib.parse import unquote

from lxml import etree

from retrieval.documents.extraction.decoding import canonical, decode
from retrieval.documents.extraction.markdown import with_structure
from retrieval.documents.extraction.visible import HEADINGS, find_opened, is_hidden, text_of
from retrieval.documents.extraction.writer import TableCell, spread, write_markdown_table
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, LeftOut, leave_out, plain_title

# The page's main element must hold this share of its letters outside links; an article, which may be one of several
# things on the page, that share.
_MAIN_SHARE = {"main": 0.5, "article": 0.75}
# What stands outside the main element is named from so many words on, and from this share of those within.
_FEWEST_OUTSIDE, _OUTSIDE_SHARE = 100, 0.1
_DROPPED = frozenset(["script", "style", "template", "object", "iframe", "datalist", "canvas", "audio", "video", "rp"])
_FURNITURE = frozenset({"nav", "footer"})
_IN_TABLES = frozenset({"tr", "thead", "tbody", "tfoot", "caption", "colgroup", "col"})
# Names of elements that are ways to other pages, if they are made of links.
_MENUS = frozenset({"nav", "navbar", "navigation", "menu", "sidebar", "topnav", "sidenav", "main-menu", "site-nav"})
# What DocBook, Sphinx and others call the ways to other pages.
_FURNITURE_CLASSES = frozenset(
    """
    toc navheader navfooter sphinxsidebar headerlink copiable-anchor copiable-link hash-link breadcrumb breadcrumbs
    """.split()  # noqa: SIM905
)
_ASIDE_FURNITURE = re.compile(
    r"side-?bar|related|promo|share|social|newsletter|advert|\bads?\b|banner|menu|\btoc\b|widget|\bnav|cookie|subscri",
    re.I,
)
# A notice that a script is needed is shorter, as are the words for a picture.
_FEWEST_NOSCRIPT_WORDS = 25
_NEEDS_SCRIPT = re.compile(r"java-?script", re.I)
# "Previous:" and a bracket.
_LONGEST_LABEL = 12
# How a link says that it leads to the page before, the next one, or the one above.
_WAYS = frozenset({"prev", "previous", "next", "up", "start", "home", "contents", "index"})
_LISTS = frozenset({"ul", "ol", "dl", "div", "section", "table"})
# What DocBook calls the boxes that it lays out as tables.
_BOXES = frozenset({"note", "tip", "warning", "caution", "important"})
# Of a table that holds another one and does not lay out a page.
_LONGEST_CELL = 300
# Of a list whose definitions are all shorter and one paragraph each, every entry is one item.
_LONGEST_DEFINITION = 1_000
# A table of contents has so many entries, and hardly any words outside its links: numbers, its title.
_FEWEST_ENTRIES, _LINKED_SHARE, _LONGEST_CONTENTS_TITLE = 3, 0.85, 30
_BLOCKS = frozenset(
    """
    address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure footer
    form header hgroup hr legend li main ol p pre search section summary table td th tr ul
    """.split()  # noqa: SIM905
) | frozenset(HEADINGS)
_SENTENCE = frozenset(
    ("p", "li", "td", "th", "dt", "dd", "label", "legend", "caption", "figcaption", "summary", "span")
)
_SENTENCE |= HEADINGS.keys()
# Buttons of more words than "Copy" and "Read more" are questions, where an answer follows.
_FEWEST_QUESTION_WORDS = 3
# A longer list of options is one of countries or of years.
_MOST_OPTIONS = 20
_NO_VALUE = frozenset(("hidden", "password", "file", "image", "color", "range"))
_ORDINAL = re.compile(r"(?:st|nd|rd|th|e|de|ste|er|re|ème|o|a|º|ª|tm|sm|r|®|™|©)", re.I)
_MARK = re.compile(r"[\w.,+*†‡§−–/\[\] -]{1,40}")
# Behind these, a raised mark begins a word.
_BEFORE_WORDS = "([{/\u2044^«“‘"
_NOTE_MARK = re.compile(r"\[?(?:\d{1,3}|[a-z*†‡])\]?")
_ITEM_BEGINS = re.compile(r"\n *(?:-|\d+\.) \Z")
_NON_SPACE = re.compile(r"\S")
_WORDS = re.compile(r"\w+")


def extract_html(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    return read_page(decode(data, filename, html=True), filename)


def read_page(source: str, filename: str) -> ExtractedText:
    """Raises: DocumentRejected for a page without elements, and for one of links alone."""
    root = parse_html(source, filename)
    if root is None:
        raise DocumentRejected(f"{filename} holds no HTML elements: check the file and upload it again.")
    title = plain_title(root.findtext(".//title") or "")
    has_links = root.find(".//a") is not None
    text, left_out = write_page(root)
    if not text.strip() and has_links:
        raise DocumentRejected(f"{filename} holds only links to other pages: it answers no question.")
    return replace(with_structure(text.strip("\n") + "\n", title), left_out=left_out)


def convert_html(root: etree._Element) -> str:
    """Return all that a reader of the page sees, but for its navigation and footer, as canonical Markdown."""
    return write_page(root)[0]


def write_page(root: etree._Element) -> tuple[str, tuple[LeftOut, ...]]:
    """Return the main part of the page as canonical Markdown, and how many words of it are left out."""
    _write_frames(root)
    hidden = _drop_unseen(root)
    _tidy(root)
    main = _find_main(root)
    text = canonical(_to_markdown(main)).strip("\n")
    words = set(_WORDS.findall(text))
    unseen = sum(word not in words for each in hidden for word in _WORDS.findall(each))
    outside = 0
    if main is not root:
        found = Counter(_WORDS.findall(_unlinked_text(root)))
        outside = (found - Counter(_WORDS.findall(text))).total()
        outside *= outside >= max(_FEWEST_OUTSIDE, _OUTSIDE_SHARE * found.total())
    return text, (*leave_out("hidden", (), unseen), *leave_out("outside", (), outside))


def parse_html(source: str, filename: str) -> etree._Element | None:
    """Return the root of the page, or None. Raises: DocumentRejected where the parser would lose words."""
    # Without huge_tree the parser leaves out what is nested in more than 255 levels, as unclosed tags soon are.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    root: etree._Element | None = etree.fromstring(source.encode(), parser)
    if any(entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log):
        # The parser stopped there, and what follows would be missing without a word.
        raise DocumentRejected(f"{filename} is nested more deeply than HTML can be read: save the page again.")
    return root


def _write_frames(root: etree._Element) -> None:
    """Put pages and shadow trees that stand within the page itself in their place."""
    for frame in list(root.iter("iframe")):
        if source := frame.get("srcdoc"):
            frame.text, frame.tag = None, "div"
            inner = parse_html(source, "The page")
            if inner is not None:
                frame.append(inner)
                inner.tag = "div"
    for template in list(root.iter("template")):
        if template.get("shadowrootmode"):
            template.tag = "div"


def _drop_unseen(root: etree._Element) -> list[str]:
    """Remove what a reader of the page does not see and the ways to other pages; return the hidden texts."""
    opened = find_opened(root)
    _name_panels(root)
    hidden: list[str] = []
    gone: set[etree._Element] = set()
    controls = set(opened.values())
    for element in list(root.iter(etree.Element)):
        if element.getparent() in gone:
            gone.add(element)
            continue
        is_out = element.tag in _DROPPED or _is_furniture(element)
        if not is_out and is_hidden(element) and element not in opened:
            hidden.append(text_of(element))
            is_out = True
        if not is_out and element.tag in ("noscript", "noframes"):
            words = text_of(element)
            is_out = len(_WORDS.findall(words)) < _FEWEST_NOSCRIPT_WORDS or bool(_NEEDS_SCRIPT.search(words))
        if not is_out and element.tag == "button":
            is_out = not _is_read(element, controls)
        if is_out:
            gone.add(element)
            _drop(element)
    return hidden


def _is_furniture(element: etree._Element) -> bool:
    if element.tag in _FURNITURE or element.get("role") == "navigation":
        return element.tag != "footer" or next(element.iterancestors("blockquote", "figure"), None) is None
    if not _FURNITURE_CLASSES.isdisjoint((element.get("class") or "").split()):
        return True
    names = " ".join(element.get(name) or "" for name in ("class", "id", "aria-label"))
    if element.tag != "aside" and (element.get("id") or "").lower() not in _MENUS:
        return False
    # An aside is a note, unless it is made of links or says that it is something else.
    if element.tag == "aside" and _ASIDE_FURNITURE.search(names):
        return True
    return _count_letters(_unlinked_text(element)) < _count_letters(text_of(element)) / 2


def _is_read(button: etree._Element, controls: set[etree._Element]) -> bool:
    """Whether the words of a button belong to those around it: within a sentence or a heading, or before an answer."""
    words, parent = text_of(button), button.getparent()
    if parent is None or not words:
        return False
    if button in controls or button.get("aria-expanded") is not None or parent in controls:
        return True
    if parent.tag in _SENTENCE and (parent.tag in HEADINGS or parent.tag in ("dt", "summary", "label")):
        return True
    if parent.tag in _SENTENCE and _count_letters(_own_text(parent)):
        return True
    after = button.getnext()
    is_question = len(_WORDS.findall(words)) >= _FEWEST_QUESTION_WORDS or words.endswith("?")
    return is_question and after is not None and after.tag in _BLOCKS and bool(_count_letters(text_of(after)))


def _own_text(element: etree._Element) -> str:
    """Return the words that stand in the element itself and in marks within its sentence, not in controls."""
    parts = [element.text or "", *(child.tail or "" for child in element)]
    parts += [text_of(child) for child in element if child.tag in ("b", "i", "em", "strong", "span", "code", "kbd")]
    return "".join(parts)


def _name_panels(root: etree._Element) -> None:
    """Give each panel of tabs the name of its tab, which stands elsewhere, as its heading."""
    panels: dict[str, etree._Element] = {}
    for key in ("id", "aria-labelledby"):
        panels |= {name: each for each in root.iter(etree.Element) if (name := each.get(key))}
    for tab in list(root.iterfind(".//*[@role='tab']")):
        names = (tab.get("id"), tab.get("aria-controls"), (tab.get("href") or "").partition("#")[2])
        panel = next((each for name in names if (each := panels.get(name or "")) is not None and each is not tab), None)
        if panel is not None and not is_hidden(tab) and not any(child.tag in HEADINGS for child in panel):
            heading = etree.Element("h3")
            heading.text, heading.tail, panel.text = text_of(tab), panel.text, None
            panel.insert(0, heading)
            _drop(tab)


def _drop_contents(root: etree._Element) -> None:
    """Remove tables of contents, which hold the words of all sections and answer nothing: lists of links that lead to
    headings, or to places in other pages. Before the first heading, any list of links is a menu."""
    places = _find_headed(root)
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
        page, mark, place = (element.get("href") or "").partition("#")
        leads = bool(mark) and (bool(page) or unquote(place) in places)
        links[element] = leads if is_link else sum(links[child] for child in inner)
    dropped: set[etree._Element] = set()
    # What holds a heading is no menu before the first one.
    headed: set[etree._Element] = set()
    for element in elements:
        above: etree._Element | None = element if element.tag in HEADINGS else None
        while above is not None and above not in headed:
            headed.add(above)
            above = above.getparent()
    is_before_headings = bool(headed)
    for element in elements:
        is_before_headings = is_before_headings and element.tag not in HEADINGS
        if element.getparent() in dropped:
            dropped.add(element)
        elif element.tag in _LISTS and linked[element] >= _LINKED_SHARE * letters[element]:
            is_menu = is_before_headings and element not in headed
            entries = sum(1 for _ in element.iter("a")) if is_menu else links[element]
            if entries >= _FEWEST_ENTRIES:
                dropped.add(element)
                parent = element.getparent()
                _drop(element)
                # Its title is left, alone.
                is_rest = parent is not None and parent.tag in ("div", "section", "details", "td")
                if parent is not None and is_rest and _count_letters(text_of(parent)) <= _LONGEST_CONTENTS_TITLE:
                    _drop(parent)


def _find_headed(root: etree._Element) -> set[str]:
    """Return the names of the places where headings are: of each heading, what is in it, and what it begins."""
    places: set[str] = set()
    for heading in root.iter(*HEADINGS):
        near = [*heading.iter(etree.Element)]
        before, parent = heading.getprevious(), heading.getparent()
        if before is not None:
            near.append(before)
        while (
            parent is not None and parent.tag in ("section", "div", "article") and not _count_letters(_own_text(parent))
        ):
            near.append(parent)
            parent = parent.getparent() if parent.getprevious() is None else None
        places.update(name for each in near for key in ("id", "name") if (name := each.get(key)))
    return places


def _drop_ways(root: etree._Element) -> None:
    """Remove the lines that lead to the next page and the one before."""
    for link in list(root.iter("a")):
        if link.get("accesskey") or not _WAYS.isdisjoint((link.get("rel") or "").lower().split()):
            line = next(link.iterancestors("p", "li", "td", "th", "div"), None)
            if line is not None and _count_letters(_unlinked_text(line)) <= _LONGEST_LABEL * len(list(line.iter("a"))):
                _drop(line)


def _tidy(root: etree._Element) -> None:
    """Drop what answers nothing, and write out what Markdown has no form for."""
    for table in list(root.iter("table")):
        for stray in [part for part in table if part.tag not in _IN_TABLES and part.find(".//tr") is None]:
            # A browser shows it before the table.
            table.addprevious(stray)
    _drop_contents(root)
    _drop_ways(root)
    _write_fields(root)
    _write_formulas(root)
    _write_marks(root)
    _open_boxes(root)
    _write_definitions(root)
    _spread_tables(root)


def _write_fields(root: etree._Element) -> None:
    """Replace the fields of forms by what they show: values, chosen and possible options, ticks; drawings by their
    words."""
    for field in list(root.iter("input", "select", "textarea", "svg")):
        kind = (field.get("type") or "text").lower()
        words = text_of(field)
        if field.tag == "svg":
            words = " ".join(text_of(text) for text in field.iter("text"))
        elif field.tag == "select":
            options = [(text_of(option), option.get("selected") is not None) for option in field.iter("option")]
            if len(options) > _MOST_OPTIONS:
                options = [option for option in options if option[1]]
            words = " / ".join(option for option, _chosen in options if option)
        elif kind in ("checkbox", "radio"):
            words = "☒ " if field.get("checked") is not None else "☐ "
        elif field.tag == "input":
            words = "" if kind in _NO_VALUE else field.get("value") or ""
            parent = field.getparent()
            is_button = kind in ("submit", "button", "reset")
            if is_button and (parent is None or not (parent.tag in _SENTENCE and _count_letters(_own_text(parent)))):
                words = ""
        _replace(field, f"{words} " if field.tag == "svg" and words else words)


def _write_formulas(root: etree._Element) -> None:
    for formula in list(root.iter("math")):
        source = formula.get("alttext") or next(
            (text_of(each) for each in formula.iter("annotation") if "tex" in (each.get("encoding") or "")), ""
        )
        _replace(formula, source or _linear(formula))


def _linear(element: etree._Element) -> str:
    """Return MathML on one line: ``(a+b)/c``, ``10^6``."""
    parts = [_linear(child) for child in element if isinstance(child.tag, str) and child.tag != "annotation"]
    marks = {"msup": "^", "mover": "^", "msub": "_", "munder": "_", "mfrac": "/"}
    if element.tag in marks and len(parts) == 2:
        return f"{_bracket(parts[0])}{marks[element.tag]}{_bracket(parts[1])}"
    if element.tag in ("msubsup", "munderover") and len(parts) == 3:
        return f"{parts[0]}_{_bracket(parts[1])}^{_bracket(parts[2])}"
    if element.tag in ("msqrt", "mroot"):
        return f"√{_bracket(parts[0] if element.tag == 'mroot' and parts else ''.join(parts))}"
    joined = " ".join(parts) if element.tag in ("mtr", "mtable") else "".join(parts)
    return f"{(element.text or '').strip()}{joined}"


def _bracket(words: str) -> str:
    return words if len(words) == 1 or words.isalnum() else f"({words})"


def _write_marks(root: etree._Element) -> None:
    """Write raised and lowered marks so that they join no number: ``10^6``, ``$320 [1]``, ``1/2``, but ``H2O``."""
    for mark in list(root.iter("sup", "sub", "a")):
        words, before = text_of(mark), _text_before(mark)
        last = before[-1:]
        is_link = mark.find(".//a") is not None or next(mark.iterancestors("a"), mark).tag == "a"
        if mark.tag == "a" and not ((mark.get("href") or "").startswith("#") and _NOTE_MARK.fullmatch(words)):
            continue
        below = mark.getnext()
        is_fraction = mark.tag == "sup" and (mark.tail or "").strip() in ("/", "\u2044") and below is not None
        if not words or not _MARK.fullmatch(words):
            _replace(mark, words)
        elif is_fraction and below is not None and below.tag == "sub":
            mark.tail = "/"
            _replace(mark, f" {words}" if last.isalnum() else words)
        elif not last.strip() or last in _BEFORE_WORDS:
            _replace(mark, words)
        elif mark.tag == "sub":
            _replace(mark, words if last.isalpha() or last in ")]" else f"_{words}")
        elif is_link or words.startswith("["):
            _replace(mark, f" [{words.strip('[]')}]")
        elif _ORDINAL.fullmatch(words):
            _replace(mark, words)
        else:
            _replace(mark, f"^{words}" if len(words.split()) == 1 else f"^({words})")


def _text_before(element: etree._Element) -> str:
    """Return the text that directly precedes an element within its sentence."""
    before = element.getprevious()
    while before is not None:
        if before.tail:
            return before.tail
        if words := "".join(map(str, before.itertext())):
            return words if before.tag not in _BLOCKS and before.tag != "br" else ""
        before = before.getprevious()
    parent = element.getparent()
    if parent is None:
        return ""
    return parent.text or ("" if parent.tag in _BLOCKS else _text_before(parent))


def _open_boxes(root: etree._Element) -> None:
    """Turn tables that only lay out a note or a page into blocks of text: around other tables, and of one column. A
    small table in a cell of a table becomes words of that cell."""
    for table in list(root.iter("table")):
        parent = table.getparent()
        classes = (parent.get("class") or "").split() if parent is not None else ()
        is_layout = table.get("role") in ("presentation", "none") or not _BOXES.isdisjoint(classes)
        inner = list(table.iter("table"))[1:]
        if inner and not is_layout:
            cells = [cell for row in _rows_of(table) if len(row) > 1 for cell in row]
            is_layout = not cells or max(_count_letters(text_of(cell)) for cell in cells) > _LONGEST_CELL
            for each in reversed(inner if not is_layout else []):
                rows = (", ".join(filter(None, map(_flatten, row))) for row in _rows_of(each))
                _replace(each, "; ".join(filter(None, rows)))
        if is_layout or all(len(row) < 2 for row in _rows_of(table)):
            for row in _rows_of(table):
                for part in row:
                    if part.tag == "th":
                        _end_with_colon(part)
                    part.tag = "div"
                row.tag = "div"
            for part in table:
                part.tag = "div"
            table.tag = "div"


def _rows_of(table: etree._Element) -> list[etree._Element]:
    """Return the rows of the table itself, not those of tables within."""
    return [row for part in table for row in ([part] if part.tag == "tr" else part) if row.tag == "tr"]


def _write_definitions(root: etree._Element) -> None:
    """Turn each list of definitions into items "term: definition", or into paragraphs if a definition is long."""
    for definitions in list(root.iter("dl")):
        for group in definitions.findall("div"):
            _unwrap(group)
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
    blocks = [part.tag for part in entry.iterdescendants() if part.tag in _BLOCKS]
    return len(_flatten(entry)) <= _LONGEST_DEFINITION and blocks in ([], ["p"])


def _end_with_colon(element: etree._Element) -> None:
    """Add a colon, unless the text ends with a sign."""
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
    """Replace tables with merged cells by such without, each cell in its column."""
    for table in list(root.iter("table")):
        cells = [[cell for cell in row if cell.tag in ("td", "th")] for row in _rows_of(table)]
        if not any(cell.get("colspan") or cell.get("rowspan") for row in cells for cell in row):
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
    return _read_number(cell, name) or 1


def _read_number(element: etree._Element, name: str) -> int | None:
    value = element.get(name) or ""
    return int(value) if value.isdecimal() and len(value) <= 4 else None


def _drop(element: etree._Element) -> None:
    """Take ``element`` out of its tree and leave the text that follows it."""
    _replace(element, "")


def _replace(element: etree._Element, words: str) -> None:
    """Put ``words`` in the place of ``element``."""
    parent, before, tail = element.getparent(), element.getprevious(), words + (element.tail or "")
    if parent is None:
        return
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _unwrap(element: etree._Element) -> None:
    """Put what is in ``element`` in its place."""
    for child in reversed(list(element)):
        element.addnext(child)
    _drop(element)


def _unlinked_text(root: etree._Element) -> str:
    """Return the text of an element outside links."""
    parts: list[str] = []
    links = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        links += (element.tag == "a") * (1 if event == "start" else -1)
        text = element.text if event == "start" else element.tail if element is not root else ""
        parts.append(text or "" if not links else "")
    return " ".join(parts)


def _find_main(root: etree._Element) -> etree._Element:
    """Return the page's only ``main`` or ``article`` element, if most of the text is in it; else the whole page."""
    for tag, share in _MAIN_SHARE.items():
        found = list(root.iter(tag))
        if len(found) == 1:
            inside, all_letters = (_count_letters(_unlinked_text(part)) for part in (found[0], root))
            if inside and inside >= share * all_letters:
                return found[0]
    return root


def _count_letters(text: str) -> int:
    return len(_NON_SPACE.findall(text))


def _to_markdown(root: etree._Element) -> str:
    """Return the text in order, as Markdown."""
    parts: list[str] = []
    _write(root, parts)
    text = "\n".join(line.rstrip(" \t") for line in "".join(parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"^( *(?:-|\d+\.) .*)\n\n+(?= *(?:-|\d+\.) )", r"\1\n", text, flags=re.M))


def _write(element: etree._Element, parts: list[str]) -> None:
    tag = element.tag
    if not isinstance(tag, str) or tag == "head":
        return
    if tag in HEADINGS:
        parts.append(f"\n\n{'#' * HEADINGS[tag]} {_flatten(element)}\n\n")
    elif tag == "pre":
        code = "".join(map(str, element.itertext())).strip("\n")
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
        parts.append(f"\n\n{fence}\n{code}\n{fence}\n\n")
    elif tag == "table":
        caption = element.find("caption")
        rows = ([_flatten(cell) for cell in row if cell.tag in ("td", "th")] for row in _rows_of(element))
        title = _flatten(caption) if caption is not None else ""
        parts.append(f"\n\n{title}\n\n{write_markdown_table(rows)}\n\n")
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
    """Return the sign of a list item, indented by the items around it."""
    parent = item.getparent()
    sign = "-"
    if parent is not None and parent.tag == "ol":
        number = 0
        for each in [item, *item.itersiblings("li", preceding=True)]:
            if (value := _read_number(each, "value")) is not None:
                number += value
                break
            number += 1
        else:
            number += (_read_number(parent, "start") or 1) - 1
        sign = f"{number}."
    return "   " * sum(1 for _ in item.iterancestors("li")) + sign


def _write_words(text: str | None, parts: list[str]) -> None:
    words = re.sub(r"\s+", " ", text or "")
    if not parts or parts[-1][-1] in "\n ":
        words = words.lstrip()
    _add(parts, words)


def _add(parts: list[str], words: str) -> None:
    """Add ``words``, unless there are none: the last part always has a last character."""
    if words:
        parts.append(words)


def _flatten(element: etree._Element) -> str:
    """Return the text of an element on one line, with a space between blocks and none within a word."""
    parts: list[str] = []
    for event, each in etree.iterwalk(element, events=("start", "end")):
        edge = " " if each is not element and (each.tag in _BLOCKS or each.tag == "br") else ""
        parts.append(edge + ((each.text if event == "start" else each.tail if each is not element else "") or ""))
    return " ".join("".join(parts).split())
