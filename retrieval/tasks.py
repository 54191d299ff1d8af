"""Background work of retrieval. Each task is a thin way to call a function that is safe to run twice."""

from __future__ import annotations

from celery import shared_task


@shared_task
def ingest_document(document_id: int) -> None:
    from retrieval.ingest import pipeline
    from retrieval.ingest.writing import reweigh

    document = pipeline.ingest(document_id, takes_turns=True)
    if document is not None:
        reweigh(document.collection)


@shared_task
def resume_ingestions() -> None:
    from retrieval.ingest import pipeline

    pipeline.resume()


@shared_task
def reconcile(repair: bool = False) -> None:
    from retrieval.reconciliation import runs

    runs.reconcile(repair=repair)


@shared_task
def carry_on_draft(draft_id: int) -> None:
    from retrieval.drafts import lifecycle

    lifecycle.carry_on(draft_id)


@shared_task
def resume_drafts() -> None:
    from retrieval.drafts import lifecycle

    lifecycle.resume()
