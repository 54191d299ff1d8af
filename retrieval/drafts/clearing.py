"""Working copies of ended drafts, cleared away: many documents at once, and nothing kept in step that all goes."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection
from django.db.models import CASCADE

from retrieval.ingest.deletion import forget_documents
from retrieval.ingest.writing import lock_statistics
from retrieval.models import Chunk, Collection, Document, Lexeme

DOCUMENTS_A_STEP = 500


def clear_next(working_copy: Collection) -> bool:
    """Delete the next documents of the collection and all that is theirs; False when it has none left.

    Must run inside a transaction. The first step empties the statistics: no reader meets the collection any more.
    """
    documents = list(
        Document.objects.filter(collection=working_copy).order_by("pk").select_for_update()[:DOCUMENTS_A_STEP]
    )
    if not documents:
        return False
    statistics = lock_statistics(working_copy.pk)
    statistics.chunks, statistics.total_length = 0, 0.0
    statistics.version += 1
    statistics.save()
    Lexeme.objects.filter(collection=working_copy).delete()
    ids = [document.pk for document in documents]
    Chunk.objects.filter(document__in=ids).only("pk").delete()
    _delete_related(ids)
    with connection.cursor() as cursor:
        # Not through the model, which tells of one document after the other.
        cursor.execute("DELETE FROM retrieval_document WHERE id = ANY(%s)", [ids])
    forget_documents(documents)
    return True


def _delete_related(ids: Sequence[int]) -> None:
    """What refers to the documents is deleted, or refers to none any more, as its foreign key says.

    Documents that came in one of them have their own turn.
    """
    for relation in Document._meta.related_objects:
        rows = relation.related_model._base_manager.filter(**{f"{relation.field.name}__in": ids})
        if relation.on_delete is CASCADE and relation.related_model is not Document:
            rows.delete()
        else:
            rows.update(**{relation.field.name: None})
