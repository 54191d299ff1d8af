"""A sentencepiece model file: a protocol buffer, of which the pieces and the normalization are read.

Source: sentencepiece_model.proto of Kudo and Richardson, "SentencePiece", EMNLP 2018.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Field numbers: in the file, in a piece, in the normalizer's and the trainer's description.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE = 1, 2
_CHARACTER_MAP = 2
_MODEL_TYPE, _UNIGRAM = 3, 1


@dataclass(frozen=True, slots=True)
class SentencePieces:
    """``pieces`` with their scores, in the order of their numbers; ``normalization`` is the compiled character map."""

    pieces: list[tuple[str, float]]
    normalization: bytes


def read_sentencepiece(content: bytes) -> SentencePieces:
    """Raises: ValueError for what is no such file, or not one of unigrams."""
    pieces, normalization = [], b""
    try:
        for number, value in _fields(content):
            if number == _PIECES and isinstance(value, bytes):
                fields = dict(_fields(value))
                text, score = fields[_PIECE_TEXT], fields.get(_PIECE_SCORE, 0.0)
                if not isinstance(text, bytes):
                    raise ValueError("a piece without text")
                pieces.append((text.decode("utf-8"), float(score)))
            elif number == _TRAINER and isinstance(value, bytes):
                if dict(_fields(value)).get(_MODEL_TYPE, _UNIGRAM) != _UNIGRAM:
                    raise ValueError("another kind than unigrams")
            elif number == _NORMALIZER and isinstance(value, bytes):
                found = dict(_fields(value)).get(_CHARACTER_MAP, b"")
                normalization = found if isinstance(found, bytes) else b""
    except (ValueError, KeyError, IndexError, struct.error) as error:
        raise ValueError(f"the sentencepiece model cannot be read: {error}") from error
    if not pieces:
        raise ValueError("the sentencepiece model holds no pieces")
    return SentencePieces(pieces, normalization)


def _fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Number and value of each field, in order."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while place < len(message):
        key = varint()
        kind = key & 7
        if kind == _VARINT:
            yield key >> 3, varint()
        elif kind == _BYTES:
            length = varint()
            if place + length > len(message):
                raise ValueError("it ends too early")
            yield key >> 3, message[place : place + length]
            place += length
        elif kind == _FIXED32:
            yield key >> 3, struct.unpack_from("<f", message, place)[0]
            place += 4
        elif kind == _FIXED64:
            place += 8
        else:
            raise ValueError("it is no protocol buffer")
