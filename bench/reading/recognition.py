"""Compare OCR engines on pages that this script draws and then degrades.

``python -m bench.reading.recognition en=TEXT nl=TEXT --engine tesseract`` draws pages of two texts in several fonts,
resolutions and layouts, with skew and noise. It reports the shares of wrong characters and wrong words, the share of
missing words regardless of order, seconds a page, and the peak of memory. ``--engine rapidocr`` needs that package,
which the site does not have.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapidfuzz.distance import Levenshtein

from bench.reporting import format_markdown_table
from retrieval.documents.extraction import ExtractionLimits
from retrieval.documents.extraction.pdf import extract_picture
from retrieval.documents.recognition import tesseract
from retrieval.documents.recognition.recognised_words import build_page

FONTS = ("DejaVuSans", "DejaVuSerif", "DejaVuSerifCondensed", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif-Italic")
# Each condition has dots per inch, degrees of skew, and the standard deviation of the noise in shades of grey.
CONDITIONS = ((300, 0.0, 0), (200, 0.0, 0), (150, 0.0, 0), (200, 1.5, 25), (150, -2.0, 40))
LAYOUTS = ("prose", "prose", "columns", "table")
_PAGE_INCHES = (8.27, 11.69)
_POINTS = 11
_LINES = 30

Recognise = Callable[[bytes, list[str]], dict[str, Any]]


def print_page(
    words: Iterator[str], font_name: str, condition: tuple[int, float, int], layout: str
) -> tuple[Image.Image, str]:
    dpi, skew, noise = condition
    font = ImageFont.truetype(f"{font_name}.ttf", round(_POINTS * dpi / 72))
    width, height = (round(side * dpi) for side in _PAGE_INCHES)
    image = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(image)
    pitch = round(1.4 * _POINTS * dpi / 72)
    columns = {"prose": [(0.1, 0.9)], "columns": [(0.08, 0.47), (0.53, 0.92)], "table": []}[layout]
    written: list[str] = []
    for left, right in columns:
        for line in range(_LINES):
            text, word = "", next(words)
            while draw.textlength(f"{text} {word}", font) < (right - left) * width:
                text, word = f"{text} {word}".strip(), next(words)
            draw.text((left * width, 0.1 * height + line * pitch), text, 0, font)
            written.append(text)
    if layout == "table":
        for row in range(_LINES // 2):
            cells = [next(words), str(37 * row + 105), f"{1.5 * row + 2:.2f}", f"{next(words)} {next(words)}"]
            for at, cell in enumerate(cells):
                draw.text(((0.1 + 0.2 * at) * width, 0.1 * height + 1.5 * row * pitch), cell, 0, font)
            written.append(" ".join(cells))
    image = image.rotate(skew, Image.Resampling.BICUBIC, fillcolor=255)
    if noise:
        grain = np.random.default_rng(7).normal(0, noise, (height, width))
        image = Image.fromarray(np.clip(np.asarray(image) * 0.85 + grain, 0, 255).astype(np.uint8))
    return image, "\n".join(written)


def generate_test_pages(texts: dict[str, str]) -> Iterator[tuple[str, tuple[int, float, int], str, Image.Image, str]]:
    for language, text in texts.items():
        source = text.split()
        for at, (condition, layout) in enumerate((c, kind) for c in CONDITIONS for kind in LAYOUTS):
            start = random.Random(at).randrange(len(source) // 2)
            yield (
                language,
                condition,
                layout,
                *print_page(iter(source[start:]), FONTS[at % len(FONTS)], condition, layout),
            )


def recognise_with_tesseract(picture: bytes, languages: list[str]) -> dict[str, Any]:
    return tesseract.recognise(io.BytesIO(picture), 1, languages, is_picture=True, finds_orientation=True)[0]


def build_rapidocr_recogniser() -> Recognise:
    engine = import_module("rapidocr").RapidOCR(
        params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1}
    )

    def recognise(picture: bytes, _languages: list[str]) -> dict[str, Any]:
        image = tesseract.convert_to_upright_greyscale(Image.open(io.BytesIO(picture)))
        found = engine(np.asarray(image.convert("RGB")))
        words = []
        units, (width, height) = tesseract.UNITS, image.size
        for at, (text, box, sure) in enumerate(
            zip(found.txts or (), found.boxes if found.boxes is not None else (), found.scores or (), strict=True)
        ):
            sides = (
                box[:, 0].min() / width,
                box[:, 1].min() / height,
                box[:, 0].max() / width,
                box[:, 1].max() / height,
            )
            words.append([text, *(round(units * side) for side in sides), [0, 0, at], round(100 * sure)])
        return {"words": words, "width": 595.0, "height": 842.0, "turned": 0}

    return recognise


def recognise_text(recognise: Recognise, picture: bytes, language: str) -> str:
    found = recognise(picture, {"en": ["eng"], "nl": ["nld"]}.get(language, ["eng", "nld"]))
    page = build_page(found["width"], found["height"], found["turned"], found["words"])
    return extract_picture(picture, "page.png", "image/png", ExtractionLimits(), {1: page}).text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="+", metavar="LANGUAGE=FILE")
    parser.add_argument("--engine", choices=("tesseract", "rapidocr"), default="tesseract")
    parser.add_argument("--most", type=int, default=1_000, help="pages in all; peak memory is that of all pages")
    options = parser.parse_args()
    recognise = build_rapidocr_recogniser() if options.engine == "rapidocr" else recognise_with_tesseract
    texts = {name: Path(path).read_text() for name, _, path in (each.partition("=") for each in options.texts)}
    totals: dict[tuple[str, ...], list[float]] = {}
    for language, (dpi, _skew, noise), layout, image, written in islice(generate_test_pages(texts), options.most):
        out = io.BytesIO()
        image.save(out, "PNG", dpi=(dpi, dpi))
        started = time.perf_counter()
        text = recognise_text(recognise, out.getvalue(), language).replace("|", " ").replace("---", " ")
        seconds = time.perf_counter() - started
        wanted, given = written.split(), text.split()
        for key in ((language, "all"), (language, f"{dpi} dpi{', skew, noise' if noise else ''}"), (language, layout)):
            total = totals.setdefault(key, [0.0] * 7)
            counts = (
                Levenshtein.distance(" ".join(wanted), " ".join(given)),
                len(" ".join(wanted)),
                Levenshtein.distance(wanted, given),
                len(wanted),
                seconds,
                1,
                (Counter(wanted) - Counter(given)).total(),
            )
            for at, count in enumerate(counts):
                total[at] += count
    rows = [
        [
            *key,
            f"{total[5]:.0f}",
            f"{100 * total[0] / total[1]:.2f} %",
            f"{100 * total[2] / total[3]:.2f} %",
            f"{100 * total[6] / total[3]:.2f} %",
            f"{total[4] / total[5]:.2f}",
        ]
        for key, total in totals.items()
    ]
    print(
        format_markdown_table(
            ["language", "pages", "count", "characters wrong", "words wrong", "words missing", "seconds a page"], rows
        )
    )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    main()
