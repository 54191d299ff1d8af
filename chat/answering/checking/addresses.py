"""Find web and mail addresses in texts, and bring them into one form to compare them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from chat.types import ContextSource

LONGEST_ADDRESS = 2048
ENDS_ADDRESS = re.compile(r"[\s<>\"`|\]\\^{}\u0000-\u001f]")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://[^\s<>\"`|\]\\^{}]{1,2048}|\bwww\.[^\s<>\"`|\]\\^{}]{1,2048}", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PUNCTUATION = ".,;:!?'*_~)"
# `quote` must not encode these characters: reserved ones, and the "%" of characters that are encoded already.
_SAFE = "!#$%&'()*+,/:;=?@[]~-._"
_ENCODED = re.compile(r"%[0-9a-fA-F]{2}")


def normalize_address(address: str) -> str:
    """Return a web or mail address in canonical form, to compare it; empty if a reader's browser must not open it."""
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
    # The path and query are sliced from the address, because `urlunsplit` would drop the "?" of an empty query.
    behind = address.partition("://")[2][len(parts.netloc) :]
    behind = _ENCODED.sub(lambda found: found.group().upper(), quote(behind, safe=_SAFE))
    return f"{parts.scheme}://{where}{behind if behind.startswith('/') else '/' + behind}"


def find_addresses(text: str) -> list[str]:
    addresses = map(strip_trailing_punctuation, _ADDRESS.findall(text) if "://" in text or "www." in text else ())
    emails = _EMAIL.findall(text) if "@" in text else ()
    return [
        *(f"https://{address}" if address[:4].lower() == "www." else address for address in addresses),
        *(f"mailto:{email}" for email in emails),
    ]


def strip_trailing_punctuation(address: str) -> str:
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


def find_known_addresses(sources: Iterable[ContextSource]) -> frozenset[str]:
    blocks = [source.block for source in sources]
    texts = (normalize_address(address) for block in blocks for address in find_addresses(block.content))
    documents = (normalize_address(passage.document_url) for block in blocks for passage in block.passages)
    return frozenset({*texts, *documents} - {""})
