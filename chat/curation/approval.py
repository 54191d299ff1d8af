from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from chat.models import ApprovedAnswer, ApprovedQuestion, ApprovedSource
from core.exceptions import RagsiteError
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import encode_query
from retrieval.models import Chunk, DocumentText
from retrieval.text.questions import normalize_question

logger = logging.getLogger(__name__)


def save_wordings(approved: ApprovedAnswer, other_wordings: Iterable[str]) -> None:
    """Store the question and ``other_wordings`` as the wordings to which the answer applies; delete all others."""
    wanted = {
        normalize_question(text): " ".join(text.split())
        for text in [*other_wordings, approved.question]
        if text.strip()
    }
    with transaction.atomic():
        approved.questions.exclude(normalized__in=wanted).delete()
        known = set(approved.questions.values_list("normalized", flat=True))
        fresh = [
            ApprovedQuestion(approved=approved, text=text, normalized=normalized)
            for normalized, text in wanted.items()
            if normalized not in known
        ]
        ApprovedQuestion.objects.bulk_create(fresh)
        # A new `updated_at` makes cached answers to the question invalid.
        approved.save(update_fields=["updated_at"])
    embed_wordings(approved.questions.all())


def embed_wordings(wordings: QuerySet[ApprovedQuestion]) -> None:
    """Store a vector of the site's current embedder for each wording without one."""
    try:
        name = embedder_choice.get_embedder().name
        for wording in wordings.exclude(embedder=name, embedding__isnull=False):
            wording.embedding, wording.embedder = encode_query(wording.text).tolist(), name
            wording.save(update_fields=["embedding", "embedder"])
            # A new `updated_at` makes cached answers to similar questions invalid.
            ApprovedAnswer.objects.filter(pk=wording.approved_id).update(updated_at=timezone.now())
    except RagsiteError as error:
        logger.warning("Wordings of approved questions have no vectors yet: %s", error)


def save_sources(approved: ApprovedAnswer, passages: Iterable[tuple[int, Chunk]]) -> None:
    """Replace the passages that the approved answer cites. ``passages`` are pairs of marker and chunk."""
    rows = []
    for marker, chunk in passages:
        text = DocumentText.objects.only("content_hash", "recipe").get(pk=chunk.document_id)
        rows.append(
            ApprovedSource(
                approved=approved,
                marker=marker,
                document_id=chunk.document_id,
                document_title=str(chunk.document)[:500],
                quote=chunk.content,
                text_version=text.version,
            )
        )
    with transaction.atomic():
        approved.sources.all().delete()
        ApprovedSource.objects.bulk_create(rows)


def approve_answer(approved: ApprovedAnswer, by: Any) -> None:
    approved.state, approved.approved_by, approved.approved_at = ApprovedAnswer.State.APPROVED, by, timezone.now()
    approved.flag, approved.flagged_at, approved.told_at = "", None, None
    approved.save()
