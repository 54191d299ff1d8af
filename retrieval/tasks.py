"""Celery tasks of retrieval. Each may run twice without harm."""

from __future__ import annotations

from celery import shared_task

from core.job_queue import run_job_maintenance
from retrieval.documents import ingestion, reconciliation
from retrieval.documents.drafts import lifecycle
from retrieval.index.chunk_writer import recompute_term_weights
from retrieval.sources import sync_runs as source_runs
from retrieval.sources.sync_runs import attempt_source_run
from retrieval.webhooks import send_delivery


@shared_task
def ingest_document(document_id: int) -> None:
    document = ingestion.ingest_document(document_id, takes_turns=True)
    if document is not None:
        recompute_term_weights(document.collection)


@shared_task
def resume_draft(draft_id: int) -> None:
    lifecycle.resume_draft(draft_id)


@shared_task
def sync_source(run_id: int) -> None:
    attempt_source_run(run_id, takes_turns=True)


@shared_task
def deliver_webhook(delivery_id: int) -> None:
    send_delivery(delivery_id)


@shared_task
def request_due_sources() -> None:
    source_runs.request_due_runs()


@shared_task
def reconcile(repair: bool = False) -> None:
    reconciliation.reconcile_index(repair=repair)


@shared_task
def sweep() -> None:
    run_job_maintenance()
