"""A saved answer as a case for a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chat.generators.extractive import NAME as EXTRACTIVE
from chat.models import Answer
from chat.types import ContextSource
from evaluation.judges.types import Case
from retrieval.search.context import ContextBlock, Passage


def case_of(answer: Answer, reference: str = "") -> Case:
    """The answer with the question as it was answered, and its sources as they were then; blank sources are left out.

    The documents may have changed since: it is judged by what it was made from.
    """
    return Case(
        question=answer.standing_alone,
        answer=answer.text,
        sources=tuple(_source(saved) for saved in answer.sources if saved["content"].strip()),
        refused=answer.refused,
        reference=reference,
        is_quoted=answer.generator == EXTRACTIVE,
    )


def _source(saved: Mapping[str, Any]) -> ContextSource:
    """The source from its saved form (``chat.streaming.payloads.source``), its block one passage."""
    passage = Passage(
        chunk_id=saved["chunk_id"],
        document_id=saved["document"]["id"],
        document_title=saved["document"]["title"],
        document_url=saved["document"]["url"],
        source="",
        collection="",
        ordinal=0,
        start=saved["start"],
        end=saved["end"],
        page=saved["page"],
        page_unit=saved.get("page_unit", "page"),
        heading_path=tuple(saved["section"].split(" › ")) if saved["section"] else (),
        content=saved["content"],
        content_hash="",
        token_count=0,
    )
    block = ContextBlock(
        best=passage,
        passages=(passage,),
        content=saved["content"],
        start=saved["start"],
        end=saved["end"],
        score=saved["score"],
        tokens=0,
    )
    return ContextSource(saved["marker"], block)
