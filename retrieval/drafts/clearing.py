"""Working copies of ended drafts, cleared away: many documents at once, and nothing kept in step that all goes."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import ManyToOneRel
from django.db.models.deletion import Collector

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
    _delete_related(documents)
    with connection.cursor() as cursor:
        # Not through the model, which tells of one document after the other.
        cursor.execute("DELETE FROM retrieval_document WHERE id = ANY(%s)", [ids])
    forget_documents(documents)
    return True


def _delete_related(documents: Sequence[Document]) -> None:
    """Delete the rows that refer to the documents, or set them to refer to none, as `on_delete` of each relation says.

    Files that came in one of the documents are documents of the working copy, and are deleted in a step of their own.
    """
    Document.objects.filter(parent__in=documents).update(parent=None)
    collector = Collector(using=DEFAULT_DB_ALIAS)
    # Hidden relations have `related_name="+"`.
    for relation in Document._meta.get_fields(include_hidden=True):
        if isinstance(relation, ManyToOneRel) and relation.on_delete is not None:
            rows = collector.related_objects(relation.related_model, [relation.field], documents)
            relation.on_delete(collector, relation.field, rows, collector.using)
    collector.delete()
