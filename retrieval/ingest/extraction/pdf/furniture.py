"""Running titles and page numbers of printed pages, found by what they say and where they stand. PURE."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from retrieval.ingest.extraction.pdf.printed import PrintedLine, PrintedPage

_EDGE_LINES = 2
_FEWEST_PAGES = 4
_SHARE = 0.6
_PLACE_SHARE = 0.4
_MOST_CHARACTERS = 120
# Points between which a line stands at the same height.
_PLACE = 4.0
_NUMBER = re.compile(r"\d{1,9}")
_ROMAN = re.compile(r"[ivxlc]{1,7}", re.I)

_Shape = tuple[str, str]


def drop_furniture(pages: Sequence[PrintedPage]) -> None:
    """Takes running headers and footers out of ``pages``.

    A line is one when it is among the highest or lowest two of its page and comes back, but for a number that counts
    with the pages, on most pages; or when most pages have such a line at its very height, set off from the text, and
    it comes back on a few, as the title of a chapter does. Nothing is dropped from files of fewer than four pages, nor
    from a page that would be left empty.
    """
    if len(pages) < _FEWEST_PAGES:
        return
    seen: Counter[_Shape] = Counter()
    places: Counter[tuple[str, int]] = Counter()
    edges = [_find_edges(page, index) for index, page in enumerate(pages)]
    for found in edges:
        seen.update({shape for _, shapes, _ in found for shape in shapes})
        places.update({place for _, _, place in found if place})
    written = sum(bool(page.lines) for page in pages)
    most = max(3, _SHARE * written)
    for page, found in zip(pages, edges, strict=True):
        dropped = [
            line
            for line, shapes, place in found
            if any(
                seen[shape] >= most
                or (seen[shape] >= 2 and place and places[place] >= max(_FEWEST_PAGES, _PLACE_SHARE * written))
                for shape in shapes
            )
        ]
        left = [line for line in page.lines if not any(line is gone for gone in dropped)]
        page.lines = left or page.lines


def _find_edges(page: PrintedPage, index: int) -> list[tuple[PrintedLine, list[_Shape], tuple[str, int] | None]]:
    """The outer lines, their shapes, and the height at which one stands that is set off from the text."""
    rows = sorted(page.lines, key=lambda line: line.middle)
    found = []
    for edge, outer, step in (("top", 0, 1), ("bottom", len(rows) - 1, -1)):
        at, levels = outer, 0
        previous: PrintedLine | None = None
        while 0 <= at < len(rows):
            line = rows[at]
            is_new = previous is None or abs(line.middle - previous.middle) > 0.5 * line.size
            levels += is_new
            if levels > _EDGE_LINES:
                break
            inner = next(
                (other for other in rows[at + step :: step] if abs(other.middle - line.middle) > 0.5 * line.size), None
            )
            is_apart = levels == 1 and inner is not None and abs(inner.middle - line.middle) > 1.5 * line.size
            place = (edge, round(line.middle / _PLACE)) if is_apart else None
            found.append((line, list(_shapes(edge, line.text, index)), place))
            previous = line
            at += step
    return found


def _shapes(edge: str, text: str, index: int) -> list[_Shape]:
    """The line's words, and what its first and its last number are beyond the page's index."""
    line = " ".join(text.split())
    if len(line) > _MOST_CHARACTERS:
        return []
    shapes = [(edge, f"={line}")]
    numbers = list(_NUMBER.finditer(line))
    for number in numbers[:1] + numbers[1:][-1:]:
        rest = f"{line[: number.start()]}#{line[number.end() :]}"
        shapes.append((edge, f"{rest}+{int(number[0]) - index}"))
    if _ROMAN.fullmatch(line):
        shapes.append((edge, "roman"))
    return shapes
