"""What the passages of a document depend on beside its file."""

from __future__ import annotations

import hashlib

from retrieval import conf
from retrieval.ingest.chunking import chunker
from retrieval.models import Document, DocumentText, Embedder
from retrieval.text.blocks import BLOCKS_VERSION
from retrieval.text.terms import ANALYSIS_VERSION


def compute_fingerprint(document: Document, title: str, embedder: Embedder) -> str:
    """Fingerprint of all that shapes a passage beside its own text: passages with another fingerprint are made anew."""
    parts = (
        chunker.CHUNKER_VERSION,
        BLOCKS_VERSION,
        ANALYSIS_VERSION,
        1,  # what was kept of token vectors until version 0.2: without it all documents would be read again
        embedder.name,
        document.collection.text_search_configuration,
        title,
        # A model's questions are worth another reading.
        *([generator.name] if (generator := conf.question_generator()) else []),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def is_current(document: Document) -> bool:
    """Whether the document's passages were made the way they would be made now."""
    embedder = Embedder.objects.filter(is_active=True).first()
    if embedder is None:
        return False
    return DocumentText.objects.filter(
        pk=document.pk,
        content_hash=document.content_hash,
        recipe=compute_fingerprint(document, document.title, embedder),
    ).exists()
