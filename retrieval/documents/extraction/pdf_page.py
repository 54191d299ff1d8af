"""Read the lines of a PDF page with the box of each character. Runs in the sandbox process, in one thread."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from ctypes import byref, c_int, create_string_buffer
from functools import lru_cache
from itertools import groupby, islice, pairwise
from math import degrees, sqrt
from typing import Any

import pypdfium2.raw as pdfium_c

from retrieval.documents.extraction.printed import Box, PrintedLine, PrintedPage, find_surrounding_box, turn_box
from retrieval.documents.extraction.ruled_tables import RuledLines, gather_rules

# Codes of pdfium for a hyphen at the end of a line.
_MARKED_HYPHENS = (0x02, 0xFFFE)
_LINE_ENDS = (0x0A, 0x0D)
# Codes of ligatures in TeX fonts without a map to Unicode (encodings OT1 and T1).
_TEX_LIGATURES = {0x0B: "ff", 0x0C: "fi", 0x0D: "fl", 0x0E: "ffi", 0x0F: "ffl"} | {
    0x1B: "ff", 0x1C: "fi", 0x1D: "fl", 0x1E: "ffi", 0x1F: "ffl"
}  # fmt: skip
_BOLD_NAME = re.compile(r"bold|black|heavy|semib|demi|CMBX|SFBX", re.I)
# Least gap between parts of a line, in line heights.
WIDE_GAP = 1.2
_OTHER_ROW = 0.75
# Superscripts and subscripts have at most this share of the height of the line's other characters.
_MARK_SIZE = 0.85
# Superscripts rise at least this share of that height above the base line. The limit for subscripts is below the line.
_RAISED, _LOWERED = 0.12, -0.04
# The base line is this share of a character's height above the lower side of its box.
_DESCENT = 0.2
_LONGEST_NUMBER = 3
_ORDINALS = frozenset(["st", "nd", "rd", "th", "e", "er", "re", "ère", "ème", "eme", "de", "ste", "o", "os"])
_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe]")
_NUMBER_HYPHEN = re.compile("(?<=[\u0590-\u08ff])([0-9]++[-–])")
_NUMBER_GAP = 8.0
_SAMPLED_ANGLES = 40
_UNREADABLE = re.compile("[\ufffd\ue000-\uf8ff]")
_FEWEST_LETTERS = 5
_LATIN_WORD = re.compile(r"(?<![^\W_])[a-z]{2,}+(?![^\W_])")
_COMMON_PAIRS = frozenset(
    """
    th he in er an re nd on en at ou ed ha to or it is hi es ng ar te st se le al ti ve me ne de nt ri ro li ra io ic ge
    ie ee aa ij oo sc ch ei un da do qu ue os as la lo co ma no el ta ec ce ur us ca di si et am em om im il ol ul ad be
    ke va vo we wa zi ow ni na ki po pr tr pe pa so su tu mo mi vi nn ll ss tt
    """.split()  # noqa: SIM905
)
_FEWEST_SIGNS = 12
_MOST_UNMAPPED = 0.3
_MOST_CONTROLS = 0.2
_STAMPED_LETTERS = 120
_WHOLE_PAGE = 0.5
_MOST_SHAPES = 2_000


class _Writer:
    def __init__(self, textpage: Any) -> None:
        self._textpage = textpage
        self.lines: list[PrintedLine] = []
        self._start_line()

    def _start_line(self, *, follows: bool = False) -> None:
        self._characters: list[str] = []
        self._boxes: list[Box] = []
        self._indexes: list[int] = []
        # ``_marks`` has 1 for each superscript, -1 for each subscript, otherwise 0. ``_base`` is the last character
        # that is neither.
        self._marks: list[int] = []
        self._base: tuple[Box, int] = ((0.0, 0.0, 0.0, 0.0), 0)
        self._sides = (0.0, 0.0)
        self.has_space, self.may_end, self._is_to_left = False, False, False
        self._follows = follows

    def add_character(self, character: str, box: Box, index: int) -> None:
        mark = self._find_mark((box, index), self._base) if self._boxes else 0
        # Small characters at the start of a note are its number.
        if 0 < len(self._boxes) <= _LONGEST_NUMBER and self._find_mark(self._base, (box, index)) > 0:
            self._marks, self._base = [1] * len(self._marks), (box, index)
            self.has_space = True
        # pdfium reports the end of a line at a superscript, although the line continues.
        if self.may_end and not ((mark or any(self._marks[-1:])) and self._continues_line(box)):
            self.end_line()
        is_to_left = character >= "\u0590" and _TO_LEFT.match(character) is not None
        if self._boxes:
            last = self._boxes[-1]
            height = max(last[3] - last[1], 1.0)
            # After a superscript, the line continues at the height before it.
            base, middle = self._base[0], box[1] + box[3]
            rise = min(abs(middle - last[1] - last[3]), abs(middle - base[1] - base[3])) / 2
            if rise > _OTHER_ROW * max(height, box[3] - box[1]):
                self.end_line()
            elif self._is_to_left or (is_to_left and box[2] < last[0] + height):
                # In text from right to left, numbers run from left to right. The first digit of a number is at its left
                # end, so the number's width is part of the gap to the preceding word: a wider gap is allowed.
                if max(self._sides[0] - box[2], box[0] - self._sides[1]) > height * (
                    WIDE_GAP if is_to_left else _NUMBER_GAP
                ):
                    self.end_line()
            elif box[0] < last[0] - height:
                self.end_line()
            elif box[0] - last[2] > WIDE_GAP * height:
                self.end_line(follows=True)
        if self.has_space and self._boxes:
            last = self._boxes[-1]
            sides = sorted((last[0], box[2]) if is_to_left else (last[2], max(last[2], box[0])))
            self._append_character(" ", (sides[0], last[1], sides[1], last[3]), 0)
        self.has_space = self.may_end = False
        self._is_to_left |= is_to_left
        left, right = self._sides
        if not self._boxes:
            mark, left, right = 0, box[0], box[2]
        if not mark:
            self._base = box, index
        self._sides = box[0] if box[0] < left else left, box[2] if box[2] > right else right
        for part in character:
            self._append_character(part, box, mark)
            self._indexes.append(index)

    def _append_character(self, character: str, box: Box, mark: int) -> None:
        self._characters.append(character)
        self._boxes.append(box)
        self._marks.append(mark)

    def _find_mark(self, character: tuple[Box, int], base_character: tuple[Box, int]) -> int:
        """Return 1 if ``character`` is a superscript of ``base_character``, -1 if it is a subscript, otherwise 0."""
        (box, index), (base, base_index) = character, base_character
        height, own = base[3] - base[1], box[3] - box[1]
        rise = base[3] - box[3] - _DESCENT * (height - own)
        if own > _MARK_SIZE * height or _LOWERED * height < rise < _RAISED * height or abs(rise) > height:
            return 0
        is_small = self._read_font(index)[0] <= _MARK_SIZE * self._read_font(base_index)[0]
        return (1 if rise > 0 else -1) if is_small else 0

    def _continues_line(self, box: Box) -> bool:
        base, last = self._base[0], self._boxes[-1]
        height = base[3] - base[1]
        return abs(box[1] + box[3] - base[1] - base[3]) < height and -0.5 * height < box[0] - last[2] < height

    def end_line(self, *, follows: bool = False) -> None:
        if self._characters:
            samples = {self._indexes[0], self._indexes[len(self._indexes) // 2], self._indexes[-1]}
            sizes, bolds = zip(*map(self._read_font, samples), strict=True)
            box, size = find_surrounding_box(self._boxes), sorted(sizes)[len(sizes) // 2]
            if self._is_to_left:
                _move_hyphens_before_numbers(self._characters, self._boxes)
            text, boxes = _mark_superscripts_and_subscripts(self._characters, self._boxes, self._marks)
            self.lines.append(PrintedLine(text, box, size, all(bolds), self._follows, boxes))
        self._start_line(follows=follows)

    def _read_font(self, index: int) -> tuple[float, bool]:
        matrix = pdfium_c.FS_MATRIX()
        scale = 1.0
        if pdfium_c.FPDFText_GetMatrix(self._textpage, index, byref(matrix)):
            scale = sqrt(abs(matrix.a * matrix.d - matrix.b * matrix.c)) or 1.0
        name = create_string_buffer(128)
        flags = c_int()
        pdfium_c.FPDFText_GetFontInfo(self._textpage, index, name, len(name), byref(flags))
        return round(pdfium_c.FPDFText_GetFontSize(self._textpage, index) * scale, 1), _is_bold(name.value)


@lru_cache(maxsize=256)
def _is_bold(name: bytes) -> bool:
    return _BOLD_NAME.search(name.decode("ascii", "replace")) is not None


def _move_hyphens_before_numbers(characters: list[str], boxes: list[Box]) -> None:
    for number in _NUMBER_HYPHEN.finditer("".join(characters)):
        first, hyphen = number.start(1), number.end(1) - 1
        if boxes[hyphen][0] >= boxes[hyphen - 1][0]:
            characters.insert(first, characters.pop(hyphen))
            boxes.insert(first, boxes.pop(hyphen))


def _mark_superscripts_and_subscripts(
    characters: Sequence[str], boxes: Sequence[Box], marks: Sequence[int]
) -> tuple[str, list[Box]]:
    """Return a line's text and the boxes of its characters. ``^`` and ``_`` precede superscripts and subscripts."""
    if not any(marks):
        return "".join(characters), list(boxes)
    text: list[str] = []
    placed: list[Box] = []
    at = 0
    for mark, run in groupby(marks):
        start, at = at, at + len(list(run))
        word, rest = "".join(characters[start:at]), "".join(characters[at : at + 1])
        before = "".join(text[-2:]).rstrip()[-1:]
        is_number = word.lstrip("+-−–")[:1].isdigit()
        sign = ""
        if mark > 0 and rest not in ("/", "⁄") and word.casefold() not in _ORDINALS:
            is_set_off = before.isdigit() and (is_number or word.isalpha())
            sign = "^" if is_set_off or (is_number and before and not rest.isalnum()) else ""
        elif mark < 0 and before.isdigit() and is_number:
            sign = "_"
        if sign:
            while text[-1:] == [" "]:
                text.pop()
                placed.pop()
            text.append(sign)
            placed.append((boxes[start][0], boxes[start][1], boxes[start][0], boxes[start][3]))
        text += characters[start:at]
        placed += boxes[start:at]
    return "".join(text), placed


def read_page(page: Any) -> PrintedPage:
    """Return the page with its lines in the order of the file, which may not be the reading order."""
    left, bottom, right, top = page.get_bbox()
    size = max(right - left, 1.0), max(top - bottom, 1.0)
    sizes = {0: size, 90: size[::-1], 180: size, 270: size[::-1]}
    textpage = page.get_textpage()
    try:
        turned = _find_text_rotation(textpage)
        writers = {angle: _Writer(textpage) for angle in sizes}
        writer = writers[turned]
        loose = pdfium_c.FS_RECTF()
        count, unmapped, controls = max(1, pdfium_c.FPDFText_CountChars(textpage)), 0, 0
        for index in range(pdfium_c.FPDFText_CountChars(textpage)):
            code = pdfium_c.FPDFText_GetUnicode(textpage, index)
            if pdfium_c.FPDFText_HasUnicodeMapError(textpage, index) == 1:
                unmapped += 1
                controls += code < 0x20
            ligature = _TEX_LIGATURES.get(code, "")
            if ligature and pdfium_c.FPDFText_IsGenerated(textpage, index):
                ligature = ""
            if code in _LINE_ENDS and not ligature:
                writer.may_end = True
                continue
            if code in (0x20, 0xA0, 0x09):
                writer.has_space = True
                continue
            if not code or 0xD800 <= code < 0xE000:
                continue
            is_hyphen = code in _MARKED_HYPHENS
            # If the font has no height, pdfium returns the box of the drawn character.
            if not pdfium_c.FPDFText_GetLooseCharBox(textpage, index, byref(loose)):
                continue
            x1, y1, x2, y2 = loose.left, loose.bottom, loose.right, loose.top
            if not (left <= (x1 + x2) / 2 <= right and bottom <= (y1 + y2) / 2 <= top):
                continue  # outside the page
            angle = _measure_angle(textpage, index)
            writer = writers[angle]
            box = turn_box((x1 - left, top - y2, x2 - left, top - y1), angle, *sizes[angle])
            writer.add_character("-" if is_hyphen else ligature or chr(code), box, index)
            if is_hyphen:
                writer.end_line()
        for writer in writers.values():
            writer.end_line()
        words = textpage.get_text_bounded()
    finally:
        textpage.close()
    aside = [line for angle, writer in writers.items() if angle != turned for line in writer.lines]
    shown = (page.get_rotation() - turned) % 360
    lines = writers[turned].lines
    return PrintedPage(*sizes[turned], lines, shown, words, unmapped / count, controls / count, aside)


def _measure_angle(textpage: Any, index: int) -> int:
    """Return by how many degrees the character must be rotated clockwise to be upright."""
    return round(-degrees(pdfium_c.FPDFText_GetCharAngle(textpage, index)) / 90) * 90 % 360


def _find_text_rotation(textpage: Any) -> int:
    count = pdfium_c.FPDFText_CountChars(textpage)
    angles = Counter(
        _measure_angle(textpage, index)
        for index in range(0, max(0, count), max(1, count // _SAMPLED_ANGLES))
        if pdfium_c.FPDFText_GetUnicode(textpage, index) > 0x20
    )
    return angles.most_common(1)[0][0] if angles else 0


def find_ruled_lines(page: Any, printed: PrintedPage) -> RuledLines:
    left, _bottom, _right, top = page.get_bbox()
    turned = (page.get_rotation() - printed.turned) % 360
    boxes = []
    for found in islice(page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_PATH], max_depth=1), _MOST_SHAPES):
        x1, y1, x2, y2 = found.get_bounds()
        boxes.append(turn_box((x1 - left, top - y2, x2 - left, top - y1), turned, printed.width, printed.height))
    return gather_rules(boxes)


def needs_ocr(page: Any, printed: PrintedPage) -> bool:
    """Return whether a page needs OCR: it is a scan, its letters are only vector shapes, or its text is unreadable.

    Unreadable text is removed from ``printed``.
    """
    text = "".join(line.text for line in [*printed.lines, *printed.aside])
    if printed.controls > _MOST_CONTROLS or _is_garbled(text, printed.unmapped):
        printed.lines, printed.aside = [], []
        return True
    letters = sum(map(str.isalnum, text))
    if letters < _FEWEST_LETTERS:
        return bool(pdfium_c.FPDFPage_CountObjects(page) > 0)
    # The few letters on a scan may be a stamp.
    images = page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=3) if letters < _STAMPED_LETTERS else ()
    sides = (image.get_bounds() for image in images)
    smallest = _WHOLE_PAGE * printed.width * printed.height
    return any((right - left) * (top - bottom) > smallest for left, bottom, right, top in sides)


def _is_garbled(text: str, unmapped: float) -> bool:
    """Return whether a text has no words, because the font's map of characters is missing or wrong.

    ``unmapped`` is the share of characters that the map lacks.
    """
    signs = "".join(text.split())
    letters = sum(map(str.isalpha, signs))
    if 2 * len(_UNREADABLE.findall(signs)) > len(signs) or (unmapped > _MOST_UNMAPPED and 3 * letters < len(signs)):
        return True
    # Readable text has common pairs of letters, except product codes (few words) and gene sequences (few letters).
    is_unmapped = unmapped > _MOST_UNMAPPED
    words = _LATIN_WORD.findall(text.casefold() if is_unmapped else text)
    if 2 * sum(map(len, words)) < letters or len(set().union(*words)) < _FEWEST_SIGNS:
        return False
    pairs = [before + after for word in words for before, after in pairwise(word)]
    common = sum(pair in _COMMON_PAIRS for pair in pairs)
    fewest, share = (20, 0.42) if is_unmapped else (60, 0.28)
    return len(pairs) >= fewest and common < share * len(pairs)
