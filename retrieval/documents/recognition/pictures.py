"""Recognises one page of a file: drawn, turned upright, straightened, read. Runs in the sandbox."""

from __future__ import annotations

import math
from typing import Any, BinaryIO

import numpy as np
import pypdfium2
from PIL import Image, ImageOps

from retrieval.documents.recognition.tesseract import Engine, RecognisedWord

UNITS = 10_000
_DPI = 300
# A page may be as large as a wall: of more, the picture is made smaller.
_MOST_PIXELS = 24_000_000
# A picture without a resolution is taken for one of a page of this width in inches.
_USUAL_WIDTH = 8.0
_LEAST_DPI, _MOST_SCALE = 200, 3.0
_SAMPLED_WIDTH = 800
_LARGEST_SKEW = 5.0
_LEAST_SKEW = 0.15
_LEAST_ORIENTATION_CONFIDENCE = 2.0


def recognise(
    file: BinaryIO, number: int, languages: list[str], *, is_picture: bool, finds_orientation: bool
) -> tuple[dict[str, Any], bytes]:
    """The words of page ``number`` (from 1), each as text, box, line and confidence; the page's size in points, and by
    how many degrees it is turned to be upright. Boxes are in ten thousandths of the upright page.
    """
    image, dpi = _draw_picture(file, number) if is_picture else _draw_page(file, number)
    width, height = (72.0 * side / dpi for side in image.size)
    image = ImageOps.autocontrast(image, cutoff=1)
    turned = _find_turn(image, dpi) if finds_orientation else 0
    if turned:
        image = image.rotate(-turned, expand=True)
        width, height = (height, width) if turned in (90, 270) else (width, height)
    skew = find_skew(image)
    straight = image.rotate(skew, resample=Image.Resampling.BICUBIC, fillcolor=255) if skew else image
    words = Engine(languages).recognise(straight.tobytes(), *straight.size, dpi)
    return {
        "words": [_to_row(word, image.size, skew) for word in words],
        "width": width,
        "height": height,
        "turned": turned,
    }, b""


def _find_turn(image: Image.Image, dpi: int) -> int:
    """By how many degrees, clockwise, the picture is to be turned to be upright; 0 when that is not sure."""
    engine = Engine(["osd"])
    turned, _sure = engine.orientation(image.tobytes(), *image.size, dpi)
    if not turned:
        return 0
    # A picture on its side is judged badly; the picture as it would be upright is not.
    upright = image.rotate(-turned, expand=True)
    left, sure = engine.orientation(upright.tobytes(), *upright.size, dpi)
    return turned if left == 0 and sure >= _LEAST_ORIENTATION_CONFIDENCE else 0


def _draw_page(file: BinaryIO, number: int) -> tuple[Image.Image, int]:
    document = pypdfium2.PdfDocument(file)
    page = document[number - 1]
    width, height = (max(float(side), 1.0) for side in page.get_size())
    scale = min(_DPI / 72, math.sqrt(_MOST_PIXELS / (width * height)))
    bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False)
    return bitmap.to_pil().convert("L"), round(72 * scale)


def _draw_picture(file: BinaryIO, number: int) -> tuple[Image.Image, int]:
    image: Image.Image = Image.open(file)
    image.seek(number - 1)
    image = flatten(image)
    dpi = image.width / _USUAL_WIDTH
    scale = min(max(1.0, _LEAST_DPI / dpi), _MOST_SCALE, math.sqrt(_MOST_PIXELS / (image.width * image.height)))
    if scale != 1:
        size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
        image = image.resize(size, Image.Resampling.LANCZOS)
    return image, max(70, round(dpi * scale))


def flatten(image: Image.Image) -> Image.Image:
    """The picture as a camera meant it to be held, on white paper, in shades of grey."""
    image = ImageOps.exif_transpose(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        paper.alpha_composite(image)
        image = paper
    return image.convert("L")


def find_skew(image: Image.Image) -> float:
    """By how many degrees, counterclockwise, a page is to be turned for its lines to be level; 0 below a sixth of a
    degree. Lines are level where the rows of pixels differ most (Postl, 1986).
    """
    scale = min(1.0, _SAMPLED_WIDTH / image.width)
    sample = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
    dark = ImageOps.invert(sample)

    def sharpness(angle: float) -> float:
        rows = np.asarray(dark.rotate(angle, resample=Image.Resampling.BILINEAR), dtype=np.float32).sum(axis=1)
        return float(np.square(np.diff(rows)).sum())

    best = max(np.arange(-_LARGEST_SKEW, _LARGEST_SKEW + 0.1, 0.5), key=sharpness)
    best = max(np.arange(best - 0.4, best + 0.45, 0.1), key=sharpness)
    return float(best) if abs(best) >= _LEAST_SKEW else 0.0


def _to_row(word: RecognisedWord, size: tuple[int, int], skew: float) -> list[Any]:
    """The word as JSON holds it, with its box on the page before it was straightened."""
    width, height = size
    sine, cosine = math.sin(math.radians(skew)), math.cos(math.radians(skew))
    x, y = (word.left + word.right - width) / 2, (word.top + word.bottom - height) / 2
    # The picture was turned counterclockwise; this is back.
    x, y = x * cosine - y * sine + width / 2, x * sine + y * cosine + height / 2
    half_width, half_height = (word.right - word.left) / 2, (word.bottom - word.top) / 2
    box = (x - half_width, y - half_height, x + half_width, y + half_height)
    sides = (round(UNITS * side / (width if at % 2 == 0 else height)) for at, side in enumerate(box))
    return [word.text, *sides, list(word.line), round(word.confidence)]
