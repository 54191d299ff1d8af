"""Keeps the statistics of keyword search true when a document is deleted, however it is deleted, and no copy behind."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from retrieval.ingest.submission import forget_file
from retrieval.ingest.writing import remove_chunks
from retrieval.models import Collection, Document, Draft
from retrieval.viewer import pdf_pages
from retrieval.viewer.page import page_pictures


@receiver(pre_delete, sender=Document)
def remove_chunks_with_document(instance: Document, **_: Any) -> None:
    remove_chunks(instance)


@receiver(post_delete, sender=Document)
def remove_file_with_document(instance: Document, **_: Any) -> None:
    if instance.file:
        forget_file(instance.file.storage, str(instance.file.name))
        if not Document.objects.filter(content_hash=instance.content_hash).exists():
            transaction.on_commit(lambda: pdf_pages.forget_pictures(page_pictures(), instance.content_hash))


@receiver(post_delete, sender=Draft)
def remove_working_copy_with_draft(instance: Draft, **_: Any) -> None:
    if instance.working_copy_id is not None:
        Collection.objects.filter(pk=instance.working_copy_id).delete()
