"""Find Python codecs for the encodings that servers, web pages, feeds and mails declare."""

from __future__ import annotations

import re

import webencodings

# The WHATWG standard lacks these code pages, which mails use.
_CODE_PAGES = {"cp932": "cp932", "cp936": "gb18030", "cp949": "cp949", "cp950": "big5hkscs"}
_IN_XML = re.compile(rb"""\A\s*<\?xml\s[^<>]{0,200}?\bencoding\s*+=\s*+["']([^"'<>]{1,60})""")
# This is the border of two encoded words (RFC 2047) without a blank.
_TOUCHING = re.compile(r"\?==\?(?=[\w*-]+\?[bq]\?)", re.I)
# Encoded words and parameters (RFC 2231) declare an encoding.
_IN_HEADER = re.compile(r"""(=\?|\*=\s*"?)([^?'"*\s]{0,100})(?=[?'*])""")


def find_python_codec(label: str) -> str:
    """Return the Python codec for an encoding's label in the WHATWG Encoding Standard; empty if unknown."""
    found = webencodings.lookup(label.encode("ascii", "replace").decode())
    name = found.codec_info.name if found and found.name not in ("replacement", "x-user-defined") else ""
    return "gb18030" if name == "gbk" else name or _CODE_PAGES.get(label.strip().lower(), "")


def find_xml_label(data: bytes) -> str:
    found = _IN_XML.search(data[:400])
    return found[1].decode("ascii", "replace") if found else ""


def find_xml_encoding(data: bytes) -> str | None:
    """Return "utf-8" if the XML declares an unknown encoding; None if a parser can use its declaration."""
    label = find_xml_label(data)
    return "utf-8" if label and not find_python_codec(label) else None


def replace_unknown_encodings(header: str) -> str:
    """Return a mail header in which each declared encoding is a Python codec, or ``unknown-8bit``."""
    raw = header.encode("utf-8", "surrogateescape")
    try:
        header = raw.decode()
    except UnicodeDecodeError:
        header = raw.decode("cp1252", "replace")
    header = _TOUCHING.sub("?= =?", header)
    return _IN_HEADER.sub(lambda found: found[1] + (find_python_codec(found[2]) or "unknown-8bit"), header)
