from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils import timezone

from chat.models import Answer, Conversation, DeletedDocument, StreamedEvent
from retrieval.models import Document

CONVERSATIONS_A_STEP = 200

# Earlier releases stored the beginnings of passages in the trace.
_FORGET_BEGINNINGS = "UPDATE chat_answer SET trace = trace - 'passages' WHERE created_at >= %s AND trace ? 'passages'"


def delete_old_conversations() -> int:
    if settings.CONVERSATION_DAYS <= 0:
        return 0
    deleted = 0
    before = timezone.now() - timedelta(days=settings.CONVERSATION_DAYS)
    old = Conversation.objects.filter(updated_at__lt=before)
    while step := list(old.order_by("updated_at").values_list("pk", flat=True)[:CONVERSATIONS_A_STEP]):
        Conversation.objects.filter(pk__in=step).delete()
        deleted += len(step)
    return deleted


@receiver(post_delete, sender=Document)
def _note_deleted_document(instance: Document, **_: Any) -> None:
    DeletedDocument.objects.create(document_id=instance.pk, title=instance.title, added_at=instance.created_at)


def forget_deleted_documents() -> int:
    """Delete stored events and prompts with text of deleted documents; return the number of affected answers.

    The answers stay, but are not reused.
    """
    with transaction.atomic():
        deleted = list(DeletedDocument.objects.select_for_update(skip_locked=True))
        if not deleted:
            return 0
        added = min(row.added_at for row in deleted)
        with connection.cursor() as cursor:
            cursor.execute(_FORGET_BEGINNINGS, [added])
        documents = [row.document_id for row in deleted]
        answers = Answer.objects.filter(created_at__gte=added, source_documents__overlap=documents)
        StreamedEvent.objects.filter(answer__in=answers, answer__completed_at__isnull=False).delete()
        DeletedDocument.objects.filter(pk__in=[row.pk for row in deleted]).delete()
        return answers.update(cache_key="", dialogue=[])
