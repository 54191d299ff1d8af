"""Addresses of the web and of mail in texts, and which of them a model may repeat. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from chat.types import ContextSource

# Longer ones are nobody's to click.
LONGEST_ADDRESS = 2048
# What ends an address in prose, in Markdown and in a table.
ENDS_ADDRESS = re.compile(r"[\s<>\"`|\]\\^{}\u0000-\u001f]")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://[^\s<>\"`|\]\\^{}]{1,2048}|\bwww\.[^\s<>\"`|\]\\^{}]{1,2048}", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PUNCTUATION = ".,;:!?'*_~)"
# What urllib leaves as it is: the signs that have a meaning in addresses, and what is encoded already.
_SAFE = "!#$%&'()*+,/:;=?@[]~-._"
_ENCODED = re.compile(r"%[0-9a-fA-F]{2}")


def canonical(address: str) -> str:
    """The address in the one form by which two are compared; empty for one that is not to be followed.

    Scheme and host are written small, an empty path as "/", characters beyond ASCII behind the host percent-encoded, as
    browsers send them. Everything else counts: path, case, query, fragment. Not to be followed are addresses with a
    user's name, with signs that browsers rewrite, and of other schemes than http, https and mailto.
    """
    if len(address) > LONGEST_ADDRESS or ENDS_ADDRESS.search(address):
        return ""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ""
    rest = quote(address.partition(":")[2], safe=_SAFE) if parts.scheme == "mailto" else ""
    if parts.scheme == "mailto":
        return f"mailto:{rest.lower()}"
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or "%" in host:
        return ""
    standard = {"http": 80, "https": 443}[parts.scheme]
    where = host if port in (None, standard) else f"{host}:{port}"
    # Cut from the text itself: taken apart and put together, an empty query would be lost.
    behind = address.partition("://")[2][len(parts.netloc) :]
    behind = _ENCODED.sub(lambda found: found.group().upper(), quote(behind, safe=_SAFE))
    return f"{parts.scheme}://{where}{behind if behind.startswith('/') else '/' + behind}"


def find_addresses(text: str) -> list[str]:
    """The addresses that stand in a text, mail addresses with "mailto:", each without what closes its sentence."""
    addresses = map(without_closing, _ADDRESS.findall(text) if "://" in text or "www." in text else ())
    emails = _EMAIL.findall(text) if "@" in text else ()
    return [
        *(f"https://{address}" if address[:4].lower() == "www." else address for address in addresses),
        *(f"mailto:{email}" for email in emails),
    ]


def without_closing(address: str) -> str:
    """The address without what belongs to the sentence around it: a bracket that it does not open, closing marks."""
    depth = 0
    for at, sign in enumerate(address):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            address = address[:at]
            break
    balanced = depth <= 0
    while address and address[-1] in _PUNCTUATION and not (balanced and address[-1] == ")"):
        address = address[:-1]
    return address


def known_addresses(sources: Iterable[ContextSource]) -> frozenset[str]:
    """The canonical addresses that stand in the sources' texts, and those of their documents."""
    blocks = [source.block for source in sources]
    texts = (canonical(address) for block in blocks for address in find_addresses(block.content))
    documents = (canonical(passage.document_url) for block in blocks for passage in block.passages)
    return frozenset({*texts, *documents} - {""})
