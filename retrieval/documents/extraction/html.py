"""Convert the content of an HTML page to Markdown, without navigation, footers and scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote

from lxml import etree

from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.markdown import build_markdown_text
from retrieval.documents.extraction.numbering import format_list_number
from retrieval.documents.extraction.visible import HEADINGS, find_collapsible_elements, is_hidden, text_of
from retrieval.documents.extraction.writer import TableCell, spread_merged_cells, write_markdown_table
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    LeftOutParts,
    Section,
    describe_left_out_parts,
    read_declared_title,
)

_SITE_NAME = re.compile(r" ?[—–|·:-] \S")

# The main content has at least this share of the page's letters outside links.
_MAIN_SHARE = {"main": 0.5, "article": 0.75}
# Words outside the main content are reported if they are at least this many, and at least this share of all words.
_FEWEST_OUTSIDE, _OUTSIDE_SHARE = 100, 0.1
_DROPPED = frozenset(["script", "style", "template", "object", "iframe", "datalist", "canvas", "audio", "video", "rp"])
_FURNITURE = frozenset({"nav", "footer"})
_PARTS = frozenset(("div", "section", "ul", "ol", "p", "span", "form", "header", "dialog", "table", "a", "td"))
_IN_TABLES = frozenset({"tr", "thead", "tbody", "tfoot", "caption", "colgroup", "col"})
# Class names of elements that belong to the site and not to the page's content. Outside <aside>, a name in _LINKED_PART
# counts only if more than half of the element's letters are in links.
_SITE_PART, _LINKED_PART = (
    re.compile(rf"(?:^|[\s_-])(?:{'|'.join(names.split())})(?=$|[\s\d_-])", re.I)
    for names in (
        r"""cookies? consent gdpr onetrust cookiebot shar(?:e|ing) social newsletter subscribe advert\w* ads? sponsor\w*
        breadcrumbs? pag(?:er|ination) editsection catlinks printfooter taboola outbrain toc navheader navfooter
        sphinxsidebar headerlink copiable-anchor copiable-link hash-link linenos lineno rouge-gutter""",
        r"""related recommend\w* popular trending latest teasers? promos? (?:side|nav)bar menu nav(?:igation)? header
        footer widgets? banner tags topics complementary topnav sidenav""",
    )
)
_SMALL_PART, _PART_SHARE = 100, 0.2
# A shorter <noscript> element usually only says that JavaScript is needed.
_FEWEST_NOSCRIPT_WORDS = 25
_NEEDS_SCRIPT = re.compile(r"java-?script", re.I)
_LONGEST_LABEL = 12
_WAYS = frozenset({"prev", "previous", "next", "up", "start", "home", "contents", "index"})
_LISTS = frozenset({"ul", "ol", "dl", "div", "section", "table"})
_BOXES = frozenset({"note", "tip", "warning", "caution", "important"})
# A table that contains tables is used for layout, not for data, if a cell has more letters than this.
_LONGEST_CELL = 300
_LONGEST_DEFINITION = 1_000
# A table of contents has at least this many links and this share of its letters in links; its title is at most this
# long.
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
# Longest description of a picture within a sentence, such as a key or a smiley.
_LONGEST_SIGN = 12
# A button above text is a question if it has at least this many words. "Read more" is only a label.
_FEWEST_QUESTION_WORDS = 3
# A longer list usually has countries or years, so only its chosen options are written.
_MOST_OPTIONS = 20
_NO_VALUE = frozenset(("hidden", "password", "file", "image", "color", "range"))
_ORDINAL = re.compile(r"(?:st|nd|rd|th|e|de|ste|er|re|ème|o|a|º|ª|tm|sm|r|®|™|©)", re.I)
_MARK = re.compile(r"[\w.,+*†‡§−–/\[\] -]{1,40}")
# A superscript after one of these characters begins a word.
_BEFORE_WORDS = "([{/\u2044^«“‘"
_NOTE_MARK = re.compile(r"\[?(?:\d{1,3}|[a-z*†‡])\]?")
_ITEM_BEGINS = re.compile(r"\n *(?:-|\d+\.) \Z")
_TABS = frozenset(("tab", "pill"))
_OF_PANEL = ("id", "aria-controls", "href", "data-bs-target", "data-target")
_LIST_STYLE = re.compile(r"list-style[^;]{0,40}(lower|upper)-(?:alpha|latin|(roman))", re.I)
_LIST_FORMS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_STRUCK = frozenset(("s", "del", "strike"))
_NON_SPACE = re.compile(r"\S")
_PAGE_END = re.compile(r"</(?:body|html)\s*+>", re.I)
_WORDS = re.compile(r"\w+")


def extract_html(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    return read_page(decode(data, filename, html=True), filename)


def read_page(source: str, filename: str) -> ExtractedText:
    """Return the page's text. Raises: DocumentRejected if the page has no elements, or its only text is links."""
    root = parse_html(source, filename)
    if root is None:
        raise DocumentRejected(f"{filename} holds no HTML elements: check the file and upload it again.")
    title = read_declared_title(root.findtext(".//title") or "")
    has_links = root.find(".//a") is not None
    text, left_out = write_page(root)
    if not text.strip() and has_links:
        raise DocumentRejected(f"{filename} holds only links to other pages: it answers no question.")
    extracted = build_markdown_text(text.strip("\n") + "\n", title)
    return replace(extracted, title=_cut_site_name(title, extracted.sections) or extracted.title, left_out=left_out)


def _cut_site_name(title: str, sections: Sequence[Section]) -> str:
    heading = sections[0].title if sections else ""
    rest = title.removeprefix(heading) if heading else title
    return heading if rest != title and _SITE_NAME.match(rest) else title


def convert_html(root: etree._Element) -> str:
    return write_page(root)[0]


def write_page(root: etree._Element) -> tuple[str, tuple[LeftOutParts, ...]]:
    _write_frames(root)
    _rename_headings(root)
    _show_protected_addresses(root)
    unread = _drop_invisible_elements(root)
    _rewrite_elements_for_markdown(root)
    main = _find_main(root)
    titles = root.findall(".//h1")
    if len(titles) == 1 and main not in (root, *titles[0].iterancestors()) and _read_unlinked_text(titles[0]).strip():
        main.text, titles[0].tail = "", main.text
        main.insert(0, titles[0])
    text = make_canonical_text(_to_markdown(main)).strip("\n")
    words = Counter(_WORDS.findall(text))
    counts = {kind: sum(word not in words for word in _WORDS.findall(" ".join(unread[kind]))) for kind in unread}
    found = Counter(_WORDS.findall(_read_unlinked_text(root)))
    counts["outside"] += (found - words).total() if main is not root else 0
    counts["outside"] *= counts["outside"] >= max(_FEWEST_OUTSIDE, _OUTSIDE_SHARE * found.total())
    return text, tuple(each for kind, count in counts.items() for each in describe_left_out_parts(kind, (), count))


def parse_html(source: str, filename: str) -> etree._Element | None:
    """Return the page's root element; None for an empty page. Raises: DocumentRejected if words would be lost."""
    # The parser would drop elements below 255 levels if huge_tree were off.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    # The parser would drop what follows the end tags, which browsers show.
    root: etree._Element | None = etree.fromstring(_PAGE_END.sub("", source).encode(), parser)
    if any(entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log):
        raise DocumentRejected(f"{filename} is nested more deeply than HTML can be read: save the page again.")
    return root


def _write_frames(root: etree._Element) -> None:
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


def _rename_headings(root: etree._Element) -> None:
    """Give elements that are headings by their role the tags of headings."""
    for element in root.iter("div", "p", "span"):
        if element.get("role") == "heading":
            level = _read_number(element, "aria-level") or 2
            element.tag = f"h{min(level, 6)}"


def _show_protected_addresses(root: etree._Element) -> None:
    """Decode mail addresses that Cloudflare encodes. In a browser, a script decodes them."""
    for element in root.xpath("//*[@data-cfemail]"):
        try:
            key, *letters = bytes.fromhex(element.get("data-cfemail"))
            address = bytes(letter ^ key for letter in letters).decode()
        except ValueError:
            continue
        _replace_with_text(element, address)


def _drop_invisible_elements(root: etree._Element) -> dict[str, list[str]]:
    tabs = _find_tab_elements(root)
    opened = find_collapsible_elements(root)
    _insert_panel_headings(root, tabs)
    unread: dict[str, list[str]] = {"hidden": [], "struck": [], "outside": []}
    gone: set[etree._Element] = set()
    controls = set(opened.values())
    elements = list(root.iter(etree.Element))
    letters, linked = _count_letters_by_element(elements)
    plain = letters[root] - linked[root]
    most = min(max(_SMALL_PART, _PART_SHARE * plain), plain / 2)
    for element in elements:
        if element.getparent() in gone:
            gone.add(element)
            continue
        is_out = element.tag in _DROPPED
        if not is_out and _is_site_boilerplate(element, letters[element], linked[element], most):
            unread["outside"] += [_read_unlinked_text(element)] * (element.tag in _PARTS)
            is_out = True
        if not is_out and is_hidden(element) and element not in opened:
            unread["hidden"].append(text_of(element))
            is_out = True
        if not is_out and (element.tag in _STRUCK or "line-through" in (element.get("style") or "")):
            unread["struck"].append(text_of(element))
            is_out = True
        if not is_out and element.tag in ("noscript", "noframes"):
            words = text_of(element)
            is_out = len(_WORDS.findall(words)) < _FEWEST_NOSCRIPT_WORDS or bool(_NEEDS_SCRIPT.search(words))
        if not is_out and element.tag == "button":
            is_out = not _has_content_words(element, controls)
        if is_out:
            gone.add(element)
            _drop(element)
    return unread


def _is_site_boilerplate(element: etree._Element, letters: int, linked_letters: int, most_letters: float) -> bool:
    """Return whether an element is part of the site, such as a menu, and not of the page's content."""
    if element.tag in _FURNITURE or element.get("role") == "navigation":
        return element.tag != "footer" or next(element.iterancestors("blockquote", "figure"), None) is None
    is_linked = linked_letters > letters / 2
    names = " ".join(element.get(name) or "" for name in ("class", "role", "aria-label"))
    # An article on newsletters may have the id "newsletter", made from its heading. So the id of an element with a
    # heading only counts if most of the element's text is links.
    if element.tag in ("aside", "div", "ul", "form") and (is_linked or next(element.iter(*HEADINGS), None) is None):
        names = f"{names} {element.get('id') or ''}"
    if element.tag == "aside":
        return is_linked or bool(_SITE_PART.search(names) or _LINKED_PART.search(names))
    if element.tag not in _PARTS or letters - linked_letters > most_letters or element.find(".//h1") is not None:
        return False
    return bool(_SITE_PART.search(names) or (is_linked and _LINKED_PART.search(names)))


def _has_content_words(button: etree._Element, controls: set[etree._Element]) -> bool:
    words, parent = text_of(button), button.getparent()
    if parent is None or not words:
        return False
    if button in controls or button.get("aria-expanded") is not None or parent in controls:
        return True
    if parent.tag in _SENTENCE and (parent.tag in HEADINGS or parent.tag in ("dt", "summary", "label")):
        return True
    if parent.tag in _SENTENCE and _count_letters(_read_own_text(parent)):
        return True
    after = button.getnext()
    is_question = len(_WORDS.findall(words)) >= _FEWEST_QUESTION_WORDS or words.endswith("?")
    return is_question and after is not None and after.tag in _BLOCKS and bool(_count_letters(text_of(after)))


def _read_own_text(element: etree._Element) -> str:
    parts = [element.text or "", *(child.tail or "" for child in element)]
    parts += [text_of(child) for child in element if child.tag in ("b", "i", "em", "strong", "span", "code", "kbd")]
    return "".join(parts)


def _find_tab_elements(root: etree._Element) -> list[etree._Element]:
    for number, tablist in enumerate(root.xpath("//*/*[@role='tablist']")):
        tabs, panels = tablist.xpath(".//*[@role='tab']"), tablist.xpath("..//*[@role='tabpanel']")
        for order, (tab, panel) in enumerate(zip(tabs, panels, strict=False) if len(tabs) == len(panels) else ()):
            if not (panel.get("id") or panel.get("aria-labelledby")):
                panel.set("id", f"panel-{number}-{order}")
                tab.set("aria-controls", f"panel-{number}-{order}")
    kinds = ("role", "data-bs-toggle", "data-toggle")
    return [each for each in root.iter(etree.Element) if not _TABS.isdisjoint(map(each.get, kinds))]


def _insert_panel_headings(root: etree._Element, tabs: list[etree._Element]) -> None:
    panels: dict[str, etree._Element] = {}
    for key in ("id", "aria-labelledby"):
        panels |= {name: each for each in root.iter(etree.Element) if (name := each.get(key))}
    for tab in tabs:
        names = [(tab.get(key) or "").lstrip("#") for key in _OF_PANEL]
        panel = next((each for name in names if (each := panels.get(name)) is not None and each is not tab), None)
        if panel is not None and not is_hidden(tab) and not any(child.tag in HEADINGS for child in panel):
            heading = etree.Element("h3")
            heading.text, heading.tail, panel.text = text_of(tab), panel.text, None
            panel.insert(0, heading)
            _drop(tab)


def _drop_tables_of_contents(root: etree._Element) -> None:
    """Remove lists of links that repeat the headings (tables of contents) or precede the first heading (menus)."""
    places = _find_heading_places(root)
    links: dict[etree._Element, int] = {}
    elements = list(root.iter(etree.Element))
    letters, linked = _count_letters_by_element(elements)
    for element in reversed(elements):
        page, mark, place = (element.get("href") or "").partition("#")
        leads = bool(mark) and (bool(page) or unquote(place) in places)
        is_link = element.tag == "a" and element.get("href")
        links[element] = leads if is_link else sum(links[child] for child in element.iterchildren(etree.Element))
    dropped: set[etree._Element] = set()
    is_before_headings = next(root.iter(*HEADINGS), None) is not None
    for element in elements:
        is_before_headings = is_before_headings and element.tag not in HEADINGS
        if element.getparent() in dropped:
            dropped.add(element)
        elif element.tag in _LISTS and linked[element] >= _LINKED_SHARE * letters[element]:
            is_menu = is_before_headings and next(element.iter(*HEADINGS), None) is None
            entries = sum(1 for _ in element.iter("a")) if is_menu else links[element]
            if entries >= _FEWEST_ENTRIES:
                dropped.add(element)
                parent = element.getparent()
                _drop(element)
                is_rest = parent is not None and parent.tag in ("div", "section", "details", "td")
                if parent is not None and is_rest and _count_letters(text_of(parent)) <= _LONGEST_CONTENTS_TITLE:
                    _drop(parent)


def _count_letters_by_element(
    elements: list[etree._Element],
) -> tuple[dict[etree._Element, int], dict[etree._Element, int]]:
    letters: dict[etree._Element, int] = {}
    linked: dict[etree._Element, int] = {}
    for element in reversed(elements):
        inner = list(element.iterchildren(etree.Element))
        is_words = element.tag not in _DROPPED
        letters[element] = is_words * _count_letters(element.text or "") + sum(
            letters[child] + _count_letters(child.tail or "") for child in inner
        )
        is_link = element.tag == "a" and element.get("href")
        linked[element] = letters[element] if is_link else sum(linked[child] for child in inner)
    return letters, linked


def _find_heading_places(root: etree._Element) -> set[str]:
    places: set[str] = set()
    for heading in root.iter(*HEADINGS):
        near = [*heading.iter(etree.Element)]
        before, parent = heading.getprevious(), heading.getparent()
        if before is not None:
            near.append(before)
        while (
            parent is not None
            and parent.tag in ("section", "div", "article")
            and not _count_letters(_read_own_text(parent))
        ):
            near.append(parent)
            parent = parent.getparent() if parent.getprevious() is None else None
        places.update(name for each in near for key in ("id", "name") if (name := each.get(key)))
    return places


def _drop_page_links(root: etree._Element) -> None:
    for link in list(root.iter("a")):
        if link.get("accesskey") or not _WAYS.isdisjoint((link.get("rel") or "").lower().split()):
            line = next(link.iterancestors("p", "li", "td", "th", "div"), None)
            if line is not None and _count_letters(_read_unlinked_text(line)) <= _LONGEST_LABEL * len(
                list(line.iter("a"))
            ):
                _drop(line)


def _rewrite_elements_for_markdown(root: etree._Element) -> None:
    for table in list(root.iter("table")):
        for stray in [part for part in table if part.tag not in _IN_TABLES and part.find(".//tr") is None]:
            # Browsers show misplaced elements of a table before it.
            table.addprevious(stray)
    _drop_tables_of_contents(root)
    _drop_page_links(root)
    _write_pictures(root)
    _write_fields(root)
    _write_formulas(root)
    _mark_superscripts(root)
    _replace_layout_tables(root)
    _write_definition_lists(root)
    _spread_merged_cells(root)


def _write_pictures(root: etree._Element) -> None:
    silent = {cell for cell in root.iter("td", "th", "dt", "dd") if not text_of(cell)}
    for picture in list(root.iter("img", "svg", "i", "span")):
        words = " ".join((picture.get("alt") or picture.get("aria-label") or "").split())
        if words and not text_of(picture):
            is_alone = not silent.isdisjoint(picture.iterancestors("td", "th", "dt", "dd"))
            is_sign = picture.tag == "img" and len(words) <= _LONGEST_SIGN
            is_sign = is_sign and bool((picture.tail or _read_text_before(picture)).strip())
            if is_alone or is_sign or words.startswith("{\\displaystyle"):
                _replace_with_text(picture, words)
    for ruby in list(root.iter("ruby")):
        reading = "".join(map(text_of, ruby.iter("rt")))
        for part in list(ruby.iter("rt", "rp")):
            _drop(part)
        ruby.tail = f"({reading}){ruby.tail or ''}"


def _write_fields(root: etree._Element) -> None:
    for field in list(root.iter("input", "select", "textarea", "svg")):
        kind = (field.get("type") or "text").lower()
        words = text_of(field)
        if field.tag == "svg":
            # A <switch> repeats the words of its <foreignObject> in a <text> for other programs.
            words = " ".join(map(text_of, field.xpath(".//foreignobject | .//text[not(../foreignobject)]")))
        elif field.tag == "select":
            options = [(text_of(option), option.get("selected") is not None) for option in field.iter("option")]
            if len(options) > _MOST_OPTIONS:
                options = [option for option in options if option[1]]
            words = " / ".join(option for option, _chosen in options if option)
        elif kind in ("checkbox", "radio"):
            # A checkbox with the role of a button only opens a menu.
            words = "☒ " if field.get("checked") is not None else "☐ " if field.get("role") != "button" else ""
        elif field.tag == "input":
            words = "" if kind in _NO_VALUE else field.get("value") or ""
            parent = field.getparent()
            is_button = kind in ("submit", "button", "reset")
            if is_button and (
                parent is None or not (parent.tag in _SENTENCE and _count_letters(_read_own_text(parent)))
            ):
                words = ""
        _replace_with_text(field, f"{words} " if field.tag == "svg" and words else words)


def _write_formulas(root: etree._Element) -> None:
    for formula in list(root.iter("math")):
        source = formula.get("alttext") or next(
            (text_of(each) for each in formula.iter("annotation") if "tex" in (each.get("encoding") or "")), ""
        )
        _replace_with_text(formula, source or _write_math_line(formula))


def _write_math_line(element: etree._Element) -> str:
    parts = [_write_math_line(child) for child in element if isinstance(child.tag, str) and child.tag != "annotation"]
    marks = {"msup": "^", "mover": "^", "msub": "_", "munder": "_", "mfrac": "/"}
    if element.tag in marks and len(parts) == 2:
        return f"{_bracket_operand(parts[0])}{marks[element.tag]}{_bracket_operand(parts[1])}"
    if element.tag in ("msubsup", "munderover") and len(parts) == 3:
        return f"{parts[0]}_{_bracket_operand(parts[1])}^{_bracket_operand(parts[2])}"
    if element.tag in ("msqrt", "mroot"):
        return f"√{_bracket_operand(parts[0] if element.tag == 'mroot' and parts else ''.join(parts))}"
    joined = " ".join(parts) if element.tag in ("mtr", "mtable") else "".join(parts)
    return f"{(element.text or '').strip()}{joined}"


def _bracket_operand(words: str) -> str:
    return words if len(words) == 1 or words.isalnum() else f"({words})"


def _mark_superscripts(root: etree._Element) -> None:
    """Replace superscripts and subscripts by text, with a sign if they would otherwise change a number.

    10 with a superscript 6 becomes ``10^6``. $320 with a raised link to note 1 becomes ``$320 [1]``. H2O with a
    subscript 2 becomes ``H2O``.
    """
    for mark in list(root.iter("sup", "sub", "a")):
        words, before = text_of(mark), _read_text_before(mark)
        last = before[-1:]
        is_link = mark.find(".//a") is not None or next(mark.iterancestors("a"), mark).tag == "a"
        if mark.tag == "a" and not ((mark.get("href") or "").startswith("#") and _NOTE_MARK.fullmatch(words)):
            continue
        below = mark.getnext()
        is_fraction = mark.tag == "sup" and (mark.tail or "").strip() in ("/", "\u2044") and below is not None
        if not words or not _MARK.fullmatch(words):
            _replace_with_text(mark, words)
        elif is_fraction and below is not None and below.tag == "sub":
            mark.tail = "/"
            _replace_with_text(mark, f" {words}" if last.isalnum() else words)
        elif not last.strip() or last in _BEFORE_WORDS:
            _replace_with_text(mark, words)
        elif mark.tag == "sub":
            _replace_with_text(mark, words if last.isalpha() or last in ")]" else f"_{words}")
        elif is_link or words.startswith("["):
            _replace_with_text(mark, f" [{words.strip('[]')}]")
        elif _ORDINAL.fullmatch(words):
            _replace_with_text(mark, words)
        else:
            _replace_with_text(mark, f"^{words}" if len(words.split()) == 1 else f"^({words})")


def _read_text_before(element: etree._Element) -> str:
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
    return parent.text or ("" if parent.tag in _BLOCKS else _read_text_before(parent))


def _replace_layout_tables(root: etree._Element) -> None:
    """Convert tables that only arrange the page to blocks of text."""
    for table in list(root.iter("table")):
        parent = table.getparent()
        classes = (parent.get("class") or "").split() if parent is not None else ()
        is_layout = table.get("role") in ("presentation", "none") or not _BOXES.isdisjoint(classes)
        inner = list(table.iter("table"))[1:]
        if inner and not is_layout:
            cells = [cell for row in _list_rows(table) if len(row) > 1 for cell in row]
            is_layout = not cells or max(_count_letters(text_of(cell)) for cell in cells) > _LONGEST_CELL
            for each in reversed(inner if not is_layout else []):
                rows = (", ".join(filter(None, map(_flatten_to_text_line, row))) for row in _list_rows(each))
                _replace_with_text(each, "; ".join(filter(None, rows)))
        if is_layout or all(len(row) < 2 for row in _list_rows(table)):
            for row in _list_rows(table):
                for part in row:
                    if part.tag == "th":
                        _end_with_colon(part)
                    part.tag = "div"
                row.tag = "div"
            for part in table:
                part.tag = "div"
            table.tag = "div"


def _list_rows(table: etree._Element) -> list[etree._Element]:
    parts = sorted(table, key=lambda part: part.tag == "tfoot")
    return [row for part in parts for row in ([part] if part.tag == "tr" else part) if row.tag == "tr"]


def _write_definition_lists(root: etree._Element) -> None:
    for definitions in list(root.iter("dl")):
        for group in definitions.findall("div"):
            _unwrap(group)
        entries = [entry for entry in definitions if entry.tag in ("dt", "dd")]
        is_short = all(map(_is_short_definition, entries))
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


def _is_short_definition(entry: etree._Element) -> bool:
    blocks = [part.tag for part in entry.iterdescendants() if part.tag in _BLOCKS]
    return len(_flatten_to_text_line(entry)) <= _LONGEST_DEFINITION and blocks in ([], ["p"])


def _end_with_colon(element: etree._Element) -> None:
    text = "".join(map(str, element.itertext())).rstrip()
    if not (text[-1:].isalnum() or text[-1:] in ")]\"'`"):
        return
    while len(element) and not (element[-1].tail or "").strip():
        element = element[-1]
    if len(element):
        element[-1].tail = f"{(element[-1].tail or '').rstrip()}:"
    else:
        element.text = f"{(element.text or '').rstrip()}:"


def _spread_merged_cells(root: etree._Element) -> None:
    for table in list(root.iter("table")):
        cells = [[cell for cell in row if cell.tag in ("td", "th")] for row in _list_rows(table)]
        if not any(cell.get("colspan") or cell.get("rowspan") for row in cells for cell in row):
            continue
        rows = [
            [
                TableCell(_flatten_to_text_line(cell), _read_span(cell, "colspan"), _read_span(cell, "rowspan"))
                for cell in row
            ]
            for row in cells
        ]
        for child in list(table):
            if child.tag != "caption":
                table.remove(child)
        for at, texts in enumerate(spread_merged_cells(rows)):
            row = etree.SubElement(table, "tr")
            for text in texts:
                etree.SubElement(row, "th" if at == 0 else "td").text = text


def _read_span(cell: etree._Element, name: str) -> int:
    return _read_number(cell, name) or 1


def _read_number(element: etree._Element, name: str) -> int | None:
    value = element.get(name) or ""
    return int(value) if value.isdecimal() and len(value) <= 4 else None


def _drop(element: etree._Element) -> None:
    """Remove an element, but keep the text after it, which lxml stores in the element."""
    _replace_with_text(element, "")


def _replace_with_text(element: etree._Element, words: str) -> None:
    parent, before, tail = element.getparent(), element.getprevious(), words + (element.tail or "")
    if parent is None:
        return
    if before is not None:
        before.tail = (before.tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _unwrap(element: etree._Element) -> None:
    for child in reversed(list(element)):
        element.addnext(child)
    _drop(element)


def _read_unlinked_text(root: etree._Element) -> str:
    parts: list[str] = []
    links = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        links += (element.tag == "a") * (1 if event == "start" else -1)
        text = element.text if event == "start" else element.tail if element is not root else ""
        parts.append(text or "" if not links else "")
    return " ".join(parts)


def _find_main(root: etree._Element) -> etree._Element:
    for tag, share in _MAIN_SHARE.items():
        found = list(root.iter(tag))
        if len(found) == 1:
            inside, all_letters = (_count_letters(_read_unlinked_text(part)) for part in (found[0], root))
            if inside and inside >= share * all_letters:
                return found[0]
    return root


def _count_letters(text: str) -> int:
    return len(_NON_SPACE.findall(text))


def _to_markdown(root: etree._Element) -> str:
    parts: list[str] = []
    _write(root, parts)
    text = "\n".join(line.rstrip(" \t") for line in "".join(parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"^( *(?:-|\d+\.) .*)\n\n+(?= *(?:-|\d+\.) )", r"\1\n", text, flags=re.M))


def _write(element: etree._Element, parts: list[str]) -> None:
    tag = element.tag
    if not isinstance(tag, str) or tag == "head" or (tag == "li" and not text_of(element)):
        return
    if tag in HEADINGS:
        parts.append(f"\n\n{'#' * HEADINGS[tag]} {_flatten_to_text_line(element)}\n\n")
    elif tag == "pre":
        for part in element.iter("br", "div", "p", "li"):
            part.tail = f"\n{(part.tail or '').lstrip()}" if part.tag != "br" else f"\n{part.tail or ''}"
        code = "".join(map(str, element.itertext())).strip("\n")
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
        parts.append(f"\n\n{fence}\n{code}\n{fence}\n\n")
    elif tag == "table":
        caption = element.find("caption")
        rows = (
            [_flatten_to_text_line(cell) for cell in row if cell.tag in ("td", "th")] for row in _list_rows(element)
        )
        title = _flatten_to_text_line(caption) if caption is not None else ""
        parts.append(f"\n\n{title}\n\n{write_markdown_table(rows)}\n\n")
    elif tag == "br":
        parts.append("\n")
    elif tag in ("code", "kbd", "samp"):
        words = _flatten_to_text_line(element)
        _append_words(parts, f"`{words}`" if words and "`" not in words else words)
    else:
        edge = "\n\n" if tag in _BLOCKS and not _ITEM_BEGINS.search("".join(parts[-3:])) else ""
        _append_words(parts, f"\n{_make_list_marker(element)} " if tag == "li" else edge)
        _append_inline_text(element.text, parts)
        for child in element:
            _write(child, parts)
            _append_inline_text(child.tail, parts)
        _append_words(parts, "\n\n" if tag in _BLOCKS else "")


def _make_list_marker(item: etree._Element) -> str:
    parent = item.getparent()
    sign = "-"
    if parent is not None and parent.tag == "ol":
        is_reversed = parent.get("reversed") is not None
        start = _read_number(parent, "start")
        if start is None:
            start = len(parent.findall("li")) if is_reversed else 1
        number = 0
        for each in [item, *item.itersiblings("li", preceding=True)]:
            if (value := _read_number(each, "value")) is not None:
                start = value
                break
            number += 1
        else:
            number -= 1
        number = start - number if is_reversed else start + number
        style = _LIST_STYLE.search(parent.get("style") or "")
        form = _LIST_FORMS.get(parent.get("type", ""))
        if style:
            form = f"{style[1].lower()}{'Roman' if style[2] else 'Letter'}"
        sign = f"- {format_list_number(number, form)}." if form else f"{number}."
    return "   " * sum(1 for _ in item.iterancestors("li")) + sign


def _append_inline_text(text: str | None, parts: list[str]) -> None:
    words = re.sub(r"\s+", " ", text or "")
    if not parts or parts[-1][-1] in "\n ":
        words = words.lstrip()
    _append_words(parts, words)


def _append_words(parts: list[str], words: str) -> None:
    if words:
        parts.append(words)


def _flatten_to_text_line(element: etree._Element) -> str:
    parts: list[str] = []
    for event, each in etree.iterwalk(element, events=("start", "end")):
        edge = " " if each is not element and (each.tag in _BLOCKS or each.tag == "br") else ""
        parts.append(edge + ((each.text if event == "start" else each.tail if each is not element else "") or ""))
    return " ".join("".join(parts).split())
