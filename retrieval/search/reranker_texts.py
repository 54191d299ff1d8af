"""Passages as a reranker reads them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models.functions import Left

from retrieval.models import Chunk

LONGEST_CHARACTERS = 4000
"""Of a passage's content. Rerankers read 512 tokens, which end before, and cut what is too long themselves."""


def load_texts(chunk_ids: Sequence[int]) -> dict[int, str]:
    """Title, headings and content of each chunk as they were written, by id and in the order given.

    What is there already, as a heading that is the title, is left out; a chunk that is gone is missing.
    """
    rows = Chunk.objects.filter(pk__in=chunk_ids).values_list(
        "pk", "document__title", "heading_path", Left("content", LONGEST_CHARACTERS)
    )
    texts = {pk: _text(title, headings, content) for pk, title, headings, content in rows}
    return {pk: texts[pk] for pk in chunk_ids if pk in texts}


def _text(title: str, headings: Sequence[str], content: str) -> str:
    return "\n".join(dict.fromkeys(line for line in (title, *headings, content) if line))
