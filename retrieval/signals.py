"""Remove the data of deleted documents, sources and drafts, whatever code deletes them."""

from __future__ import annotations

import shutil
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from retrieval.documents.deletion import delete_document_files
from retrieval.index.chunk_writer import remove_chunks
from retrieval.models import Collection, Document, Draft, Source
from retrieval.sources.kinds.local_files import get_clone_path


@receiver(pre_delete, sender=Document)
def remove_chunks_with_document(instance: Document, **_: Any) -> None:
    remove_chunks(instance)


@receiver(post_delete, sender=Document)
def delete_files_of_document(instance: Document, **_: Any) -> None:
    delete_document_files(instance)


@receiver(post_delete, sender=Source)
def remove_clone_with_source(instance: Source, **_: Any) -> None:
    transaction.on_commit(lambda: shutil.rmtree(get_clone_path(instance.pk), ignore_errors=True))


@receiver(post_delete, sender=Draft)
def remove_working_copy_with_draft(instance: Draft, **_: Any) -> None:
    if instance.working_copy_id is not None:
        Collection.objects.filter(pk=instance.working_copy_id).delete()
