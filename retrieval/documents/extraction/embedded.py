"""Pictures inside of documents: which are worth recognising, and their words where they stand."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace

from PIL import Image

from retrieval.documents.extraction.decoding import canonical
from retrieval.text.extracted import EmbeddedPicture, ExtractedText, LeftOut, leave_out

# Pictures are numbered behind all pages, by what they hold: their words are kept as those of pages are.
FIRST_NUMBER = 1_000_000
_NUMBERS = 2_000_000_000
_MOST_PICTURES = 40
_MOST_BYTES = 30_000_000
_MOST_PIXELS = 60_000_000
# Smaller ones are icons and logos, longer ones are lines.
_LEAST_WIDTH, _LEAST_HEIGHT, _LEAST_PIXELS = 150, 50, 40_000
_LONGEST_SIDES = 15
_LEAST_BYTES = 1_500
_FORMATS = ("PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP")
_FEWEST_LETTERS = 6
_LEAST_CONFIDENCE = 50
_LONGEST_TEXT = 5_000


@dataclass(frozen=True, slots=True)
class RecognisedPicture:
    text: str
    confidence: float


class EmbeddedPictures:
    """The pictures of one document. Of one that comes back, as a logo does, the words stand at its first place."""

    def __init__(self, recognised: Mapping[int, RecognisedPicture]) -> None:
        self._recognised = recognised
        self._found: dict[int, bytes] = {}
        self._bytes = 0
        self._beyond = 0
        self._placed: list[float] = []

    def read(self, data: bytes | None) -> str:
        """What is to stand where the picture stands: its words, if they are recognised, or nothing."""
        if not data or len(data) < _LEAST_BYTES or not _is_worth_reading(data):
            return ""
        number = FIRST_NUMBER + int.from_bytes(hashlib.sha256(data).digest()[:8]) % _NUMBERS
        if number in self._found:
            return ""
        if len(self._found) >= _MOST_PICTURES or self._bytes + len(data) > _MOST_BYTES:
            self._beyond += 1
            return ""
        self._found[number] = data
        self._bytes += len(data)
        picture = self._recognised.get(number)
        if picture is None or picture.confidence < _LEAST_CONFIDENCE:
            return ""
        words = " ".join(canonical(picture.text).split())[:_LONGEST_TEXT]
        if sum(map(str.isalpha, words)) < _FEWEST_LETTERS:
            return ""
        self._placed.append(picture.confidence)
        return f"Text of a picture (recognised, {picture.confidence:.0f} % sure): {words}"

    def read_address(self, address: str) -> str:
        """As :meth:`read`, of a picture that stands in the address itself (``data:image/png;base64,``)."""
        head, _, body = address.partition(",")
        if not head.startswith("data:image/") or not head.endswith(";base64"):
            return ""
        try:
            return self.read(base64.b64decode(body, validate=False))
        except (binascii.Error, ValueError):
            return ""

    def tell(self, extracted: ExtractedText) -> ExtractedText:
        """``extracted`` with the pictures that are to be recognised, and what was read of them."""
        left_out = [*extracted.left_out]
        if self._placed:
            left_out.append(LeftOut("recognised", (f"{min(self._placed):.0f}",), len(self._placed)))
        found = tuple(EmbeddedPicture(number, data) for number, data in self._found.items())
        left_out += leave_out("more pictures", (), self._beyond)
        return replace(extracted, pictures=found, left_out=tuple(left_out))


def _is_worth_reading(data: bytes) -> bool:
    """Whether it is a picture of a size that may hold words. A damaged one is passed over."""
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            width, height = image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False
    is_large = width >= _LEAST_WIDTH and height >= _LEAST_HEIGHT and width * height >= _LEAST_PIXELS
    is_line = max(width, height) > _LONGEST_SIDES * min(width, height)
    return is_large and not is_line and width * height <= _MOST_PIXELS
