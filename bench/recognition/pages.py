"""Pages of known words, printed and then made as bad as scans are, and how many words are recognised wrongly. PURE."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

_PAPER = (8.27, 11.69)
_MARGIN = 0.9
_POINTS = 10.5
_LINE = 1.35
_LETTERS_PER_LINE = 88
LINES = 46


@dataclass(frozen=True, slots=True)
class Condition:
    """How a page was scanned: ``skew`` in degrees, ``blur`` in pixels, ``noise`` as the deviation of 256 shades."""

    name: str
    dpi: int
    skew: float = 0.0
    blur: float = 0.0
    noise: float = 0.0


CONDITIONS = (
    Condition("printed, 300 dpi", 300),
    Condition("2° skew, blur, noise, 300 dpi", 300, 2.0, 0.8, 12.0),
    Condition("the same, 200 dpi", 200, 2.0, 0.8, 12.0),
    Condition("-2° skew, stronger noise, 150 dpi", 150, -2.0, 0.8, 18.0),
    Condition("the same, 100 dpi", 100, -2.0, 0.8, 18.0),
)


def cut_pages(text: str, count: int) -> list[list[str]]:
    """The first pages of ``text``, as lines."""
    lines = textwrap.wrap(" ".join(text.split()), _LETTERS_PER_LINE)
    return [lines[at : at + LINES] for at in range(0, count * LINES, LINES) if lines[at : at + LINES]]


def scan(lines: Sequence[str], font: str, condition: Condition, seed: int) -> Image.Image:
    """The page as a scanner saw it. Drawn three times as large, so that small letters have their shades."""
    scale = 3 * condition.dpi
    image = Image.new("L", (round(_PAPER[0] * scale), round(_PAPER[1] * scale)), 255)
    letters = ImageFont.truetype(font, round(_POINTS * scale / 72))
    pen = ImageDraw.Draw(image)
    for at, line in enumerate(lines):
        pen.text((_MARGIN * scale, _MARGIN * scale + at * _LINE * _POINTS * scale / 72), line, fill=20, font=letters)
    if condition.skew:
        image = image.rotate(condition.skew, resample=Image.Resampling.BICUBIC, fillcolor=255)
    image = image.resize((image.width // 3, image.height // 3), Image.Resampling.LANCZOS)
    if condition.blur:
        image = image.filter(ImageFilter.GaussianBlur(condition.blur))
    if condition.noise:
        shades = np.asarray(image, dtype=np.float64)
        shades = shades + np.random.default_rng(seed).normal(0, condition.noise, shades.shape)
        image = Image.fromarray(np.clip(shades, 0, 255).astype(np.uint8))
    return image


def as_file(image: Image.Image, kind: str, dpi: int) -> io.BytesIO:
    """A picture, or a PDF file of one page with the picture on it."""
    file = io.BytesIO()
    image.save(file, kind, **({"resolution": dpi} if kind == "PDF" else {}))
    file.seek(0)
    return file


def count_errors(expected: Sequence[str], found: Sequence[str]) -> int:
    """The fewest words to change, add or leave out to come from one to the other (Levenshtein, 1966)."""
    best = list(range(len(found) + 1))
    for row, word in enumerate(expected, start=1):
        above, best = best, [row]
        for at, other in enumerate(found):
            best.append(min(above[at] + (word != other), above[at + 1] + 1, best[at] + 1))
    return best[-1]
