"""Find the words on a picture or page with Tesseract. Runs in the sandbox process."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pypdfium2
from PIL import Image, ImageOps

# File names of Tesseract 4 and 5 on different systems.
_LIBRARIES = ("libtesseract.so.5", "libtesseract.so.4", "libtesseract.5.dylib")
DATA_FOLDERS = (
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tessdata",
    "/usr/share/tesseract/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)
_SPARSE_LAYOUT = 3  # PSM_AUTO in Tesseract: finds columns
_OSD = "osd"
_WORD_LEVEL = "5"


class EngineMissing(Exception):
    """An error: Tesseract's library, or its data for a language, is not installed."""


@lru_cache(maxsize=1)
def load_library() -> Any:
    # The library would use all CPU cores.
    os.environ["OMP_THREAD_LIMIT"] = "1"
    for name in (*_LIBRARIES, ctypes.util.find_library("tesseract") if sys.platform == "darwin" else None):
        if name is None:
            continue
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.TessVersion.restype = ctypes.c_char_p
        library.TessBaseAPICreate.restype = ctypes.c_void_p
        library.TessBaseAPIGetTsvText.restype = ctypes.c_void_p
        return library
    raise EngineMissing("Tesseract's library is not installed.")


def read_version() -> str:
    return str(load_library().TessVersion().decode())


def find_data_folder() -> Path:
    for folder in map(Path, DATA_FOLDERS):
        if any(folder.glob("*.traineddata")):
            return folder
    raise EngineMissing("No data of Tesseract's languages is installed.")


def list_languages() -> list[str]:
    return sorted(path.stem for path in find_data_folder().glob("*.traineddata") if path.stem != _OSD)


def has_orientation_data() -> bool:
    return (find_data_folder() / f"{_OSD}.traineddata").exists()


class TesseractEngine:
    """Tesseract's OCR engine with the data of some languages. Raises: EngineMissing."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._library = load_library()
        folder = str(find_data_folder()).encode()
        self._api = ctypes.c_void_p(self._library.TessBaseAPICreate())
        if self._library.TessBaseAPIInit3(self._api, folder, "+".join(wanted).encode()) != 0:
            raise EngineMissing(f"Tesseract has no data for {', '.join(wanted)}.")
        self._library.TessBaseAPISetPageSegMode(self._api, _SPARSE_LAYOUT)

    def recognise(self, pixels: bytes, width: int, height: int, dpi: int) -> list[list[str]]:
        """Return the words of a greyscale picture in reading order, each as a row of Tesseract's table.

        Columns: level, page, block, paragraph, line, word, left, top, width and height in pixels, confidence from 0 to
        100, text.
        """
        library, api = self._library, self._api
        library.TessBaseAPISetImage(api, pixels, width, height, 1, width)
        library.TessBaseAPISetSourceResolution(api, dpi)
        if library.TessBaseAPIRecognize(api, None) != 0:
            return []
        address = library.TessBaseAPIGetTsvText(api, 0)
        try:
            table = ctypes.string_at(address).decode("utf-8", "replace") if address else ""
        finally:
            library.TessDeleteText(ctypes.c_void_p(address))
        rows = (row.split("\t") for row in table.split("\n"))
        return [row for row in rows if len(row) >= 12 and row[0] == _WORD_LEVEL and row[11].strip()]

    def orientation(self, pixels: bytes, width: int, height: int, dpi: int) -> tuple[int, float]:
        """Return how many degrees clockwise make the picture upright, and the confidence (2 and more: usually right).

        Needs Tesseract's data for the language "osd".
        """
        library, api = self._library, self._api
        library.TessBaseAPISetImage(api, pixels, width, height, 1, width)
        library.TessBaseAPISetSourceResolution(api, dpi)
        degrees, script = ctypes.c_int(0), ctypes.c_char_p()
        sure, script_sure = ctypes.c_float(0), ctypes.c_float(0)
        found = library.TessBaseAPIDetectOrientationScript(
            api, ctypes.byref(degrees), ctypes.byref(sure), ctypes.byref(script), ctypes.byref(script_sure)
        )
        return ((360 - degrees.value) % 360, sure.value) if found else (0, 0.0)


UNITS = 10_000
_DPI = 300
_MOST_PIXELS = 24_000_000
# Width in inches of a page without a resolution.
_USUAL_WIDTH = 8.0
_LEAST_DPI, _MOST_SCALE = 200, 3.0
_SAMPLED_WIDTH = 800
_LARGEST_SKEW = 5.0
_LEAST_SKEW = 0.15
_LEAST_ORIENTATION_CONFIDENCE = 2.0


def recognise(
    file: BinaryIO, number: int, languages: list[str], *, is_picture: bool, finds_orientation: bool
) -> tuple[dict[str, object], bytes]:
    """Return the words of page ``number`` (from 1), the page's size in points, and its rotation.

    The rotation is in degrees clockwise. The form of the words is described in ``RecognisedPage``.
    """
    image, dpi = _draw_picture(file, number) if is_picture else _draw_page(file, number)
    width, height = (72.0 * side / dpi for side in image.size)
    image = ImageOps.autocontrast(image, cutoff=1)
    turned = _find_page_rotation(image, dpi) if finds_orientation else 0
    if turned:
        image = image.rotate(-turned, expand=True)
        width, height = (height, width) if turned in (90, 270) else (width, height)
    skew = measure_skew(image)
    straight = image.rotate(skew, resample=Image.Resampling.BICUBIC, fillcolor=255) if skew else image
    words = TesseractEngine(languages).recognise(straight.tobytes(), *straight.size, dpi)
    return {
        "words": [_build_word_row(word, image.size, skew) for word in words],
        "width": width,
        "height": height,
        "turned": turned,
    }, b""


def _find_page_rotation(image: Image.Image, dpi: int) -> int:
    engine = TesseractEngine(["osd"])
    turned, _sure = engine.orientation(image.tobytes(), *image.size, dpi)
    if not turned:
        return 0
    # The confidence is low for a page that lies on its side, even if the detected rotation is correct. So the
    # rotated page is examined again.
    upright = image.rotate(-turned, expand=True)
    left, sure = engine.orientation(upright.tobytes(), *upright.size, dpi)
    return turned if left == 0 and sure >= _LEAST_ORIENTATION_CONFIDENCE else 0


def _draw_page(file: BinaryIO, number: int) -> tuple[Image.Image, int]:
    document = pypdfium2.PdfDocument(file)
    page = document[number - 1]
    width, height = (max(float(side), 1.0) for side in page.get_size())
    scale = min(_DPI / 72, math.sqrt(_MOST_PIXELS / (width * height)))
    bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False, draw_annots=False)
    return bitmap.to_pil().convert("L"), round(72 * scale)


def _draw_picture(file: BinaryIO, number: int) -> tuple[Image.Image, int]:
    image: Image.Image = Image.open(file)
    image.seek(number - 1)
    image = convert_to_upright_greyscale(image)
    dpi = image.width / _USUAL_WIDTH
    scale = min(max(1.0, _LEAST_DPI / dpi), _MOST_SCALE, math.sqrt(_MOST_PIXELS / (image.width * image.height)))
    if scale != 1:
        size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
        image = image.resize(size, Image.Resampling.LANCZOS)
    return image, max(70, round(dpi * scale))


def convert_to_upright_greyscale(image: Image.Image) -> Image.Image:
    """Return the picture in greyscale on a white background, rotated according to its EXIF data."""
    image = ImageOps.exif_transpose(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        paper.alpha_composite(image)
        image = paper
    return image.convert("L")


def measure_skew(image: Image.Image) -> float:
    """Return how many degrees counterclockwise make the picture's lines of text horizontal.

    An angle below 0.15 is returned as 0. Source: Postl, 1986.
    """
    scale = min(1.0, _SAMPLED_WIDTH / image.width)
    sample = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
    dark = ImageOps.invert(sample)

    def measure_row_sharpness(angle: float) -> float:
        rows = np.asarray(dark.rotate(angle, resample=Image.Resampling.BILINEAR), dtype=np.float32).sum(axis=1)
        return float(np.square(np.diff(rows)).sum())

    best = max(np.arange(-_LARGEST_SKEW, _LARGEST_SKEW + 0.1, 0.5), key=measure_row_sharpness)
    best = max(np.arange(best - 0.4, best + 0.45, 0.1), key=measure_row_sharpness)
    return float(best) if abs(best) >= _LEAST_SKEW else 0.0


def _build_word_row(word: Sequence[str], size: tuple[int, int], skew: float) -> list[Any]:
    width, height = size
    block, paragraph, line, _word, left, top, across, down = map(int, word[2:10])
    sine, cosine = math.sin(math.radians(skew)), math.cos(math.radians(skew))
    x, y = (2 * left + across - width) / 2, (2 * top + down - height) / 2
    # Positions are rotated back by the ``skew`` that was removed before OCR.
    x, y = x * cosine - y * sine + width / 2, x * sine + y * cosine + height / 2
    box = (x - across / 2, y - down / 2, x + across / 2, y + down / 2)
    sides = (round(UNITS * side / (width if at % 2 == 0 else height)) for at, side in enumerate(box))
    return [word[11].strip(), *sides, [block, paragraph, line], max(0, round(float(word[10])))]
