"""Decode bytes to text in canonical form: NFC, without invisible characters."""

from __future__ import annotations

import codecs
import re
import unicodedata

import chardet

from retrieval.exceptions import DocumentRejected
from retrieval.text.encodings import find_python_codec

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 200_000
_OF_SEVERAL_BYTES = frozenset({"big5hkscs", "cp932", "cp949", "euc_jp", "gb18030", "iso2022_jp"})
_HTML_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)[^<>]{0,200}?(?:charset|encoding)\s*+=\s*+["']?\s*+([\w.:-]{1,40})""", re.I
)

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# PostgreSQL refuses NUL. Some characters split words. Others make a person see other text than a model reads.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def make_canonical_text(text: str) -> str:
    """Return ``text`` in NFC, with ``\\n`` line ends and without invisible characters. Idempotent."""
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text)))


def decode(data: bytes, filename: str, *, html: bool = False, label: str = "") -> str:
    """Return the text of ``data`` in canonical form.

    ``label`` is the declared encoding. Damaged UTF-8 bytes become U+FFFD. Raises: DocumentRejected for binary data.
    """
    text = _decode(data, find_python_codec(label) or (_find_declared_charset(data) if html else ""))
    if text is None or len(_BINARY.findall(text)) > max(4, len(text) // 200):
        raise DocumentRejected(
            f"{filename} holds binary data where text was expected: upload it in its original format."
        )
    return make_canonical_text(text)


def _decode(data: bytes, declared: str) -> str | None:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    # ASCII text in UTF-16 is also valid UTF-8, with zeros between the letters.
    if encoding := _detect_utf16(data):
        return data.decode(encoding, errors="replace")
    try:
        text: str | None = data.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    if not declared and b"\x1b$" in data[:_SAMPLE_BYTES]:
        declared = "iso2022_jp"
    if text is not None and (declared not in _OF_SEVERAL_BYTES or max(text, default="") > "\u07ff"):
        return text
    if declared:
        named = data.decode(declared, errors="replace")
        if named.count("\ufffd") * 100 <= len(named):
            return named
    if text is not None:
        return text
    lenient = data.decode("utf-8", errors="replace")
    damaged = lenient.count("\ufffd")
    multibyte = sum(map(lenient[:_SAMPLE_BYTES].count, "éëïöüáàèçñ–—’‘“”•€…"))
    if damaged * 1000 <= len(lenient) and multibyte > damaged:
        return lenient
    return _guess(data)


def _find_declared_charset(data: bytes) -> str:
    match = _HTML_CHARSET.search(data[:4096])
    codec = find_python_codec(match[1].decode("ascii")) if match else ""
    # A declaration in ASCII that names UTF-16 is wrong.
    return "" if codec.startswith("utf-16") else codec


def _detect_utf16(data: bytes) -> str:
    sample = data[:_SAMPLE_BYTES]
    half = max(1, len(sample) // 2)
    if sample[1::2].count(0) > 0.4 * half:
        return "utf-16-le"
    return "utf-16-be" if sample[0::2].count(0) > 0.4 * half else ""


def _guess(data: bytes) -> str | None:
    # A small number of accented letters is no evidence for a Latin encoding. Most files come from Windows (cp1252).
    try:
        western = data.decode("cp1252")
    except UnicodeDecodeError:
        western = ""
    if _has_expected_letters(western, "éëïöüáàèçñêâôûîóíúÉËÖÜäßåøæÄ–—’‘“”•€…°±²£©®·«»´½§ "):
        return western
    # ISO 8859-15 has other codes than cp1252 for "€" and "œ". Most Mac Roman codes of these letters are control
    # characters in ISO 8859.
    for codec, letters in (("iso8859_15", "€éèêëàâçîïôûùœŒÉÀÈÇäöüßñ"), ("mac_roman", "éèêëäöüïçñàáíóúôûßÖÜÉ’“”–€")):
        written = data.decode(codec)
        if _has_expected_letters(written, letters):
            return written
    codec = guess_codec(data)
    return data.decode(codec, errors="replace") if codec else None


def _has_expected_letters(text: str, letters: str) -> bool:
    special = [char for char in text[:_SAMPLE_BYTES] if char > "\x7f"]
    return bool(special) and sum(char in letters for char in special) >= 0.9 * len(special)


def guess_codec(data: bytes) -> str:
    """Return chardet's guess of the codec; empty if the bytes are not text."""
    found = chardet.detect(data[:_SAMPLE_BYTES])["encoding"] or ""
    return find_python_codec(found) or found
