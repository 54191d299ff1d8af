from __future__ import annotations

from django.urls import reverse


def build_passage_url(document_id: int | None, start: int, end: int) -> str:
    """Return the URL of the document's page that highlights ``text[start:end]``; empty without a ``document_id``."""
    if document_id is None:
        return ""
    return f"{reverse('retrieval:document', args=[document_id])}?start={start}&end={end}#passage"
