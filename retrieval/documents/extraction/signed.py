"""Find the content of signed mail (CMS, RFC 5652). The signature is not verified."""

from __future__ import annotations

from collections.abc import Iterator

_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
_SEQUENCE, _OBJECT, _OCTETS, _OUTER_OCTETS, _EXPLICIT = 0x30, 0x06, 0x04, 0x24, 0xA0


def find_signed_content(data: bytes) -> bytes | None:
    """Return the signed content; None if the data are encrypted, damaged, or only a signature."""
    try:
        content = _find_inner_element(data, 0, len(data), _SEQUENCE)
        kind = next(_read_elements(data, *content))
        if data[kind[1] : kind[2]] != _SIGNED_DATA:
            return None
        signed = _find_inner_element(data, *_find_inner_element(data, *content, _EXPLICIT), _SEQUENCE)
        # ``signed`` has version, digests, content, certificates and signers.
        wrapped = _find_inner_element(data, *_find_inner_element(data, *signed, _SEQUENCE), _EXPLICIT)
        return b"".join(_read_octets(data, *wrapped))
    except (IndexError, StopIteration, RuntimeError):
        return None


def _find_inner_element(data: bytes, start: int, end: int, tag: int) -> tuple[int, int]:
    return next((inner, stop) for found, inner, stop in _read_elements(data, start, end) if found == tag)


def _read_octets(data: bytes, start: int, end: int) -> Iterator[bytes]:
    for tag, inner, stop in _read_elements(data, start, end):
        if tag == _OUTER_OCTETS:
            yield from _read_octets(data, inner, stop)
        elif tag == _OCTETS:
            yield data[inner:stop]


def _read_elements(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the tag of each BER element, and start and end of its content. Raises: IndexError for damaged data."""
    while start < end:
        tag, length, inner = data[start], data[start + 1], start + 2
        if length == 0x80:
            # If there is no length, two zero bytes end the content.
            stop = next(begin for tag_below, begin, _ in _read_elements(data, inner, end) if tag_below == 0) - 2
            yield tag, inner, stop
            start = stop + 2
            continue
        if length & 0x80:
            inner += length & 0x7F
            length = int.from_bytes(data[start + 2 : inner], "big")
        if inner + length > end:
            raise IndexError
        yield tag, inner, inner + length
        start = inner + length
