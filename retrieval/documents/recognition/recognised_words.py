"""Convert the words that OCR found to lines of a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median
from typing import Any

from retrieval.documents.extraction.printed import Box, PrintedLine, PrintedPage, find_surrounding_box

_UNITS = 10_000
_ASCENDING = frozenset("bdfhklt")
_DESCENDING = frozenset("gjpqy")
# OCR measures slightly different font sizes for each line, so they are rounded to this.
_SIZE_STEP = 0.25
_SURE_ENOUGH = 80


def check_recognised_page(value: Any) -> dict[str, object]:
    """Return the checked output of the sandbox, as the fields of a ``RecognisedPage``.

    Confidences are from 0 to 100. ``width`` and ``height`` of the page are in points, ``turned`` is its rotation in
    degrees clockwise. The page's ``confidence`` is the mean confidence of its letters, or None if it has no words.

    Raises: ValueError, TypeError or KeyError.
    """
    words: list[list[Any]] = [
        [
            str(text)[:200].replace("\0", ""),
            *(max(0, min(_UNITS, int(side))) for side in sides),
            [int(part) for part in line][:3],
            max(0, min(100, int(sure))),
        ]
        for text, *sides, line, sure in value["words"][:20_000]
    ]
    if any(len(word) != 7 for word in words) or value["turned"] not in (0, 90, 180, 270):
        raise ValueError("a word")
    width, height = float(value["width"]), float(value["height"])
    if not (0 < width < 1e6 and 0 < height < 1e6):
        raise ValueError("the size of a page")
    letters = sum(len(word[0]) for word in words)
    confidence = sum(len(word[0]) * word[6] for word in words) / letters if letters else None
    return {"width": width, "height": height, "turned": value["turned"], "words": words, "confidence": confidence}


def build_page(width: float, height: float, turned: int, found: Sequence[Sequence[Any]]) -> PrintedPage:
    words = (word for word in found if word[0].strip())
    groups = [list(line) for _, line in groupby(words, key=lambda word: word[5])]
    confidences = [sum(word[6] for word in words) / len(words) for words in groups]
    lines = [_build_line(words, width / _UNITS, height / _UNITS) for words in groups]
    usual = median(line.size for line in lines) if lines else 0.0
    for line, sure in zip(lines, confidences, strict=True):
        steps = round((line.size / usual - 1) / _SIZE_STEP)
        line.size = round(usual * (1 + _SIZE_STEP * steps), 1) if sure >= _SURE_ENOUGH and steps > 0 else usual
    return PrintedPage(width, height, lines, (360 - turned) % 360)


def _build_line(words: list[Sequence[Any]], across: float, down: float) -> PrintedLine:
    text: list[str] = []
    boxes: list[Box] = []
    for word, left, top, right, bottom, _line, _sure in words:
        if boxes:
            text.append(" ")
            boxes.append((boxes[-1][2], boxes[-1][1], max(boxes[-1][2], left * across), boxes[-1][3]))
        step = (right - left) * across / len(word)
        for at, character in enumerate(word):
            text.append(character)
            start = left * across + at * step
            boxes.append((start, top * down, start + step, bottom * down))
    sizes = [_estimate_font_size(word[0], (word[4] - word[2]) * down) for word in words]
    box: Box = find_surrounding_box(boxes)
    return PrintedLine("".join(text), box, round(median(sizes), 1) or 1.0, boxes=boxes)


def _estimate_font_size(word: str, height: float) -> float:
    rises = any(letter.isupper() or letter.isdigit() or letter in _ASCENDING for letter in word)
    falls = any(letter in _DESCENDING for letter in word)
    return height / (0.95 if rises and falls else 0.73 if rises or falls else 0.52)
