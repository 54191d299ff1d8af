"""What of a source can be a document."""

from __future__ import annotations

import hashlib

from django.conf import settings
from django.utils.translation import gettext as _t

from retrieval.exceptions import DocumentRejected
from retrieval.ingest import formats
from retrieval.sources.protocol import ItemRejected


def check_content(data: bytes, name: str, media_type: str) -> None:
    """Raises: ItemRejected for what can be no document."""
    if not data:
        raise ItemRejected(_t("%s is empty.") % name)
    try:
        formats.detect(data, name, media_type)
    except DocumentRejected as error:
        said, is_unknown, _formats = str(error).partition("; supported are ")
        if is_unknown:
            said = _t("%s: convert it there, or leave it out with a pattern.") % said
        raise ItemRejected(said) from error


def known_formats() -> str:
    """What decides whether a file is rejected: once it differs, those that were are looked at again."""
    names = sorted(each.media_type for each in formats.read_formats())
    return hashlib.sha256(f"{names} {settings.DOCUMENT_MAX_BYTES}".encode()).hexdigest()[:16]
