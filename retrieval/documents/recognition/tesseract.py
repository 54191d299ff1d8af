"""Recognises the text of a picture with the library of Tesseract. Runs in the sandbox.

The library is called directly: the sandbox lets no program be started.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

# Tesseract 4 and 5, as Debian, Fedora, Homebrew and others name them.
_LIBRARIES = ("libtesseract.so.5", "libtesseract.so.4", "libtesseract.5.dylib")
DATA_FOLDERS = (
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tessdata",
    "/usr/share/tesseract/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)
_SPARSE_LAYOUT = 3  # PSM_AUTO: finds columns, does not turn
_OSD = "osd"
_WORD_LEVEL = "5"


@dataclass(frozen=True, slots=True)
class RecognisedWord:
    """A recognised word: its box in pixels, the line it stands in, and how sure the engine is, from 0 to 100."""

    text: str
    left: int
    top: int
    right: int
    bottom: int
    line: tuple[int, int, int]
    confidence: float


class EngineMissing(Exception):
    """The library, or the data of a language, is not installed."""


@lru_cache(maxsize=1)
def load_library() -> Any:
    """Raises: EngineMissing."""
    # Each job has one core's share; the library would take all of them, and be slower for it.
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
        for function in ("Init3", "SetPageSegMode", "SetImage", "SetSourceResolution", "Recognize", "GetTsvText",
                         "End", "Delete", "DetectOrientationScript"):  # fmt: skip
            # The first argument is a pointer, which would be cut to an int.
            getattr(library, f"TessBaseAPI{function}").argtypes = None
        return library
    raise EngineMissing("Tesseract's library is not installed.")


def version() -> str:
    """Raises: EngineMissing."""
    return str(load_library().TessVersion().decode())


def data_folder() -> Path:
    """Where the languages' data are. Raises: EngineMissing."""
    for folder in map(Path, DATA_FOLDERS):
        if any(folder.glob("*.traineddata")):
            return folder
    raise EngineMissing("No data of Tesseract's languages is installed.")


def languages() -> list[str]:
    """The languages whose data are installed. Raises: EngineMissing."""
    return sorted(path.stem for path in data_folder().glob("*.traineddata") if path.stem != _OSD)


def has_orientation() -> bool:
    """Whether the data by which the engine tells how a page is turned are installed. Raises: EngineMissing."""
    return (data_folder() / f"{_OSD}.traineddata").exists()


class Engine:
    """An engine for some languages, with its data loaded. Raises: EngineMissing."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._library = load_library()
        folder = str(data_folder()).encode()
        self._api = ctypes.c_void_p(self._library.TessBaseAPICreate())
        if self._library.TessBaseAPIInit3(self._api, folder, "+".join(wanted).encode()) != 0:
            raise EngineMissing(f"Tesseract has no data for {', '.join(wanted)}.")
        self._library.TessBaseAPISetPageSegMode(self._api, _SPARSE_LAYOUT)

    def recognise(self, pixels: bytes, width: int, height: int, dpi: int) -> list[RecognisedWord]:
        """The words of a picture in shades of grey, in reading order; boxes in its pixels."""
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
        return list(filter(None, map(_read_word, table.split("\n"))))

    def orientation(self, pixels: bytes, width: int, height: int, dpi: int) -> tuple[int, float]:
        """By how many degrees, clockwise, the picture is to be turned to be upright, and how sure that is: at 2 and
        more, it is true most of the time. Needs the language "osd".
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


def _read_word(row: str) -> RecognisedWord | None:
    fields = row.split("\t")
    if len(fields) < 12 or fields[0] != _WORD_LEVEL or not fields[11].strip():
        return None
    _level, _page, block, paragraph, line, _word, left, top, width, height = map(int, fields[:10])
    return RecognisedWord(
        fields[11].strip(), left, top, left + width, top + height, (block, paragraph, line), max(0.0, float(fields[10]))
    )
