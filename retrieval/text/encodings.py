"""Encodings that an outside party names: a server, a page, a feed, a mail."""

from __future__ import annotations

import re

import webencodings

_IN_XML = re.compile(rb"""\A\s*<\?xml\s[^<>]{0,200}?\bencoding\s*+=\s*+["']([^"'<>]{1,60})""")
# Words of a header (RFC 2047), and its parameters (RFC 2231).
_IN_HEADER = re.compile(r"""(=\?|\*=\s*"?)([^?'"*\s]{0,100})(?=[?'*])""")


def codec_of(label: str) -> str:
    """Return the Python codec for a label of the WHATWG Encoding Standard; for any other text, an empty string.

    Python has further codecs, which fail on ordinary text (idna) or take quadratic time (punycode).
    """
    found = webencodings.lookup(label.encode("ascii", "replace").decode())
    return found.codec_info.name if found and found.name not in ("replacement", "x-user-defined") else ""


def label_in_xml(data: bytes) -> str:
    """Return the label in the XML declaration, empty without one."""
    found = _IN_XML.search(data[:400])
    return found[1].decode("ascii", "replace") if found else ""


def encoding_of_xml(data: bytes) -> str | None:
    """Return UTF-8 for XML whose declaration names no encoding of the web, None for XML that a parser may believe."""
    label = label_in_xml(data)
    return "utf-8" if label and not codec_of(label) else None


def with_known_encodings(header: str) -> str:
    """Return a header of a mail in which each label is that of a Python codec, or says that none is known."""
    return _IN_HEADER.sub(lambda found: found[1] + (codec_of(found[2]) or "unknown-8bit"), header)
