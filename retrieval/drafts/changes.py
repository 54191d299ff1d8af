"""By what a draft's working copy differs from its collection, and what tells that either has changed since."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.db.models import QuerySet

from retrieval.models import Collection, CollectionStatistics, Draft


@dataclass(frozen=True, slots=True)
class Changes:
    """By what a working copy differs from its collection: the sources of documents, in order."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def changes_of(draft: Draft) -> Changes:
    """By what the working copy differs from the collection; nothing once it is cleared away."""
    if draft.working_copy_id is None:
        return Changes()
    now, wanted = _contents(draft.collection_id), _contents(draft.working_copy_id)
    return Changes(
        added=tuple(sorted(wanted.keys() - now.keys())),
        changed=tuple(sorted(source for source in wanted.keys() & now.keys() if wanted[source] != now[source])),
        removed=tuple(sorted(now.keys() - wanted.keys())),
    )


def collections_of(draft: Draft) -> QuerySet[Collection]:
    """The draft's collection and its working copy, as far as they are there."""
    return Collection.objects.filter(pk__in=[draft.collection_id, draft.working_copy_id])


def versions_of(draft: Draft) -> list[int]:
    """The states of the collection's and the working copy's passages."""
    ids = (draft.collection_id, draft.working_copy_id or 0)
    versions = dict(CollectionStatistics.objects.filter(pk__in=ids).values_list("pk", "version"))
    return [versions.get(pk, 0) for pk in ids]


def _contents(collection_id: int) -> dict[str, str]:
    """A hash of all that makes a document what readers find, by its source."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT document.source, md5(row(document.content_hash, document.title, document.url, document.language,
                document.metadata, document.status = 'failed', passages.digest)::text)
            FROM retrieval_document AS document
            LEFT JOIN (
                SELECT document_id,
                    md5(string_agg(row(content_hash, canonical_questions)::text, '' ORDER BY ordinal)) AS digest
                FROM retrieval_chunk WHERE collection_id = %(collection)s GROUP BY document_id
            ) AS passages ON passages.document_id = document.id
            WHERE document.collection_id = %(collection)s
            """,
            {"collection": collection_id},
        )
        return dict(cursor.fetchall())
