"""Deletes old conversations, and removes deleted documents from the traces of earlier answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.dispatch import receiver
from django.utils import timezone

from chat.models import Answer, Conversation, DeletedDocument, StreamedEvent
from retrieval.documents.deletion import documents_deleted
from retrieval.models import Document

CONVERSATIONS_A_STEP = 200

# A passage of a trace that was saved before traces named documents is recognised by the document's title.
_IS_OF_DELETED = """
    coalesce((passage.value ->> 'document')::bigint, 0) = ANY(%(documents)s)
    OR NOT passage.value ? 'document' AND passage.value ->> 'title' = ANY(%(titles)s)
"""
_FORGET = f"""
    UPDATE chat_answer SET cache_key = '', trace = jsonb_set(trace, '{{passages}}', coalesce(
        (SELECT jsonb_object_agg(key, value) FROM jsonb_each(trace -> 'passages') AS passage
         WHERE NOT ({_IS_OF_DELETED})), '{{}}'))
    WHERE created_at >= %(added)s
        AND EXISTS (SELECT FROM jsonb_each(trace -> 'passages') AS passage WHERE {_IS_OF_DELETED})
    RETURNING id
"""  # constants


def delete_old_conversations() -> int:
    """Delete conversations without a question for CONVERSATION_DAYS, with everything that belongs to their answers.

    Returns how many.
    """
    if settings.CONVERSATION_DAYS <= 0:
        return 0
    deleted = 0
    before = timezone.now() - timedelta(days=settings.CONVERSATION_DAYS)
    old = Conversation.objects.filter(updated_at__lt=before)
    while step := list(old.order_by("updated_at").values_list("pk", flat=True)[:CONVERSATIONS_A_STEP]):
        Conversation.objects.filter(pk__in=step).delete()
        deleted += len(step)
    return deleted


@receiver(documents_deleted, dispatch_uid="chat.note_deleted_documents")
def _note_deleted_documents(documents: Sequence[Document], **_: Any) -> None:
    DeletedDocument.objects.bulk_create(
        DeletedDocument(document_id=document.pk, title=document.title, added_at=document.created_at)
        for document in documents
    )


def forget_deleted_documents() -> int:
    """Remove the passages of deleted documents from the traces of answers and from what a model was told, and the
    stored streams of those answers.

    Such an answer is not reused for another question. Returns how many answers were changed. The text and quotations of
    an answer stay: they are part of its asker's conversation.
    """
    with transaction.atomic():
        deleted = list(DeletedDocument.objects.select_for_update(skip_locked=True))
        if not deleted:
            return 0
        parameters: dict[str, Any] = {
            "documents": [row.document_id for row in deleted],
            "titles": [row.title for row in deleted if row.title],
            "added": min(row.added_at for row in deleted),
        }
        with connection.cursor() as cursor:
            cursor.execute(_FORGET, parameters)
            answers = [row[0] for row in cursor.fetchall()]
        # What a model was told of a document may be in later answers of the conversation, too.
        told = Answer.objects.filter(source_documents__overlap=parameters["documents"]).exclude(dialogue=[])
        told.update(dialogue=[])
        StreamedEvent.objects.filter(answer__in=answers, answer__completed_at__isnull=False).delete()
        DeletedDocument.objects.filter(pk__in=[row.pk for row in deleted]).delete()
    return len(answers)
