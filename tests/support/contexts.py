"""Sources of an answer, made of a text alone."""

from chat.types import ContextSource
from retrieval.types import ContextBlock, Passage


def source(content, *, start=100, headings=(), marker=1, score=1.0, passage=None):
    """Return a source whose best passage is all of the text, or its part ``passage``.

    Offsets of the document begin at ``start``.
    """
    first, last = passage or (0, len(content))
    best = Passage(
        chunk_id=marker, document_id=marker, document_title="Manual", document_url="", source="manual.md",
        collection="library", ordinal=0, start=start + first, end=start + last, page=None, heading_path=headings,
        content=content[first:last], content_hash="", token_count=10,
    )  # fmt: skip
    return ContextSource(marker, ContextBlock(best, (best,), content, start, start + len(content), score, 10))
