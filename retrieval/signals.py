"""Keeps the statistics of keyword search true when a document is deleted, however it is deleted."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from retrieval import pdf_pages
from retrieval.ingest.writing import remove_chunks
from retrieval.models import Document
from retrieval.reading_page import page_pictures


@receiver(pre_delete, sender=Document)
def remove_chunks_with_document(instance: Document, **_: Any) -> None:
    remove_chunks(instance)


@receiver(post_delete, sender=Document)
def remove_file_with_document(instance: Document, **_: Any) -> None:
    if instance.file:
        name, storage = str(instance.file.name), instance.file.storage
        transaction.on_commit(lambda: storage.delete(name))
        if not Document.objects.filter(content_hash=instance.content_hash).exists():
            transaction.on_commit(lambda: pdf_pages.forget(page_pictures(), instance.content_hash))
