"""Write a document's passages with their text, vectors, BM25 weights and word counts, in one transaction."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import connection, transaction
from django.db.models import Count, F, FloatField, Func, QuerySet, Sum, Value
from pgvector import HalfVector

from retrieval.exceptions import EmbedderMisconfigured
from retrieval.index.distribution import flush_gin_pending_lists
from retrieval.models import Chunk, Collection, CollectionStatistics, Document, Embedder
from retrieval.models.collection import CONFIGURATION_BY_CODE, TextSearchConfiguration
from retrieval.text.block import Row
from retrieval.text.terms import make_document_terms

if TYPE_CHECKING:
    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

# A term's frequency is the sum of the boosts of its occurrences, a simple form of BM25F (Zaragoza et al., "Microsoft
# Cambridge at TREC 13", 2004). SQL functions from a migration compute BM25's weights and length.

# Boosts of PostgreSQL's labels A to D: title, headings, questions entered by curators, content.
FIELD_BOOSTS = [1.0, 1.0, 0.5, 1.0]


def describe_bm25_parameters() -> str:
    """Return the parameters of BM25 as text. Weights stored with other parameters are out of date."""
    return f"k1={settings.BM25_K1:g} b={settings.BM25_B:g} boosts={FIELD_BOOSTS}"


def copy_vectors(rows: Iterable[tuple[int, int, int, Vectors]], embedder: Embedder) -> None:
    """Insert rows (chunk id, document id, collection id, vector) by a binary COPY. Must run in a transaction.

    Raises: IntegrityError if a vector is stored already.
    """
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "COPY retrieval_chunkembedding (chunk_id, document_id, collection_id, embedder_id, vector) "
            "FROM STDIN (FORMAT BINARY)"
        ) as copy,
    ):
        # A binary COPY does not convert values, so these must be the types of the columns.
        copy.set_types(["int8", "int8", "int8", "int8", "bytea"])
        for chunk_id, document_id, collection_id, vector in rows:
            copy.write_row((chunk_id, document_id, collection_id, embedder.pk, HalfVector(vector).to_binary()))


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A passage to write. ``vector`` is None if the passage is stored already with its vector."""

    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    content: str
    content_hash: str
    token_count: int
    questions: tuple[str, ...]
    vector: Vectors | None
    questions_edited: bool = False
    blocks: Sequence[Row] = ()


VECTORS = """
    SELECT field.*,
           setweight(to_tsvector(%(configuration)s::regconfig, %(title)s), 'A')
        || setweight(to_tsvector(%(configuration)s::regconfig, headings_terms), 'B')
        || setweight(to_tsvector(%(configuration)s::regconfig, questions_terms), 'C')
        || setweight(to_tsvector(%(configuration)s::regconfig, content_terms), 'D') AS search_vector
    FROM unnest(%(headings)s::text[], %(questions)s::text[], %(contents)s::text[], %(ordinals)s::int[])
         AS field(headings_terms, questions_terms, content_terms, ordinal)
"""


def _list_text_fields(added: Sequence[tuple[int, NewChunk]]) -> list[tuple[int, Sequence[str], Sequence[str], str]]:
    return [(ordinal, new.heading_path, new.questions, new.content) for ordinal, new in added]


def find_text_search_configuration(document: Document) -> str:
    """Return PostgreSQL's text-search configuration (a language) for the document's passages."""
    chosen = document.collection.text_search_configuration
    if chosen != TextSearchConfiguration.AUTO:
        return chosen
    if document.language:
        return CONFIGURATION_BY_CODE.get(document.language, TextSearchConfiguration.SIMPLE).value
    others = Document.objects.filter(collection=document.collection_id, language__in=CONFIGURATION_BY_CODE)
    counted = others.values_list("language").annotate(number=Count("pk")).order_by("-number", "language")
    return next((CONFIGURATION_BY_CODE[code].value for code, _ in counted), TextSearchConfiguration.ENGLISH.value)


def add_text_search_configurations(statistics: CollectionStatistics, names: Iterable[str]) -> None:
    """Add names to a collection's text-search configurations. The caller must lock and save ``statistics``."""
    statistics.configurations = " ".join(dict.fromkeys([*statistics.configurations.split(), *names]))


Parameters = dict[str, str | float | list[str] | list[int] | list[float] | list[bool] | list[int | None]]


def build_search_vector_parameters(
    document: Document, rows: Sequence[tuple[int, Sequence[str], Sequence[str], str]], configuration: str
) -> Parameters:
    """Return the parameters of the SQL in ``VECTORS``. Each row has ordinal, headings, questions and content."""
    ordinals, headings, questions, contents = zip(*rows, strict=True)
    return {
        "configuration": configuration,
        "title": make_document_terms(document.title),
        "headings": [make_document_terms("\n".join(path)) for path in headings],
        "questions": [make_document_terms("\n".join(asked)) for asked in questions],
        "contents": [make_document_terms(content) for content in contents],
        "ordinals": list(ordinals),
        "boosts": FIELD_BOOSTS,
        "k1": settings.BM25_K1,
        "b": settings.BM25_B,
    }


def compute_mean_chunk_length(document: Document, added: Sequence[tuple[int, NewChunk]], configuration: str) -> float:
    if not added:
        return 0.0
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT avg(retrieval_bm25_length(search_vector, %(boosts)s)) FROM ({VECTORS}) AS fresh",
            build_search_vector_parameters(document, _list_text_fields(added), configuration),
        )
        return max(cursor.fetchone()[0] or 0.0, 1.0)


def insert_chunks(
    document: Document,
    added: Sequence[tuple[int, NewChunk]],
    embedder: Embedder,
    reference_length: float,
    configuration: str,
) -> list[tuple[int, float]]:
    """Insert passages with their tsvectors, BM25 weights and embeddings. Return their ids and BM25 lengths."""
    if not added:
        return []
    vectors = {ordinal: new.vector for ordinal, new in added if new.vector is not None}
    parameters: Parameters = {
        **build_search_vector_parameters(document, _list_text_fields(added), configuration),
        "document": document.pk,
        "collection": document.collection_id,
        "reference_length": reference_length,
        "starts": [new.start for _, new in added],
        "ends": [new.end for _, new in added],
        "pages": [new.page for _, new in added],
        "hashes": [new.content_hash for _, new in added],
        "tokens": [new.token_count for _, new in added],
        "texts": [new.content for _, new in added],
        "paths": [json.dumps(new.heading_path) for _, new in added],
        "asked": [json.dumps(new.questions) for _, new in added],
        "edited": [new.questions_edited for _, new in added],
        "blocks": [json.dumps(new.blocks) for _, new in added],
    }
    with connection.cursor() as cursor:
        cursor.execute(
            # MATERIALIZED lets PostgreSQL analyse a text once, not for each use of `search_vector`.
            f"""
            WITH fresh AS MATERIALIZED ({VECTORS})
            INSERT INTO retrieval_chunk (document_id, collection_id, ordinal, start, "end", page, heading_path, content,
                content_hash, token_count, canonical_questions, questions_edited, blocks, configuration,
                search_vector, bm25, length)
            SELECT %(document)s, %(collection)s, fresh.ordinal, start, "end", page,
                ARRAY(SELECT jsonb_array_elements_text(path::jsonb)), content, content_hash, tokens,
                ARRAY(SELECT jsonb_array_elements_text(asked::jsonb)), edited, blocks::jsonb,
                %(configuration)s, search_vector,
                retrieval_bm25_weights(search_vector, %(boosts)s, %(k1)s, %(b)s, %(reference_length)s),
                retrieval_bm25_length(search_vector, %(boosts)s)
            FROM fresh
            JOIN unnest(%(ordinals)s::int[], %(starts)s::int[], %(ends)s::int[], %(pages)s::int[], %(hashes)s::text[],
                        %(tokens)s::int[], %(texts)s::text[], %(paths)s::text[], %(asked)s::text[], %(edited)s::bool[],
                        %(blocks)s::text[])
                 AS place(ordinal, start, "end", page, content_hash, tokens, content, path, asked, edited, blocks)
                 USING (ordinal)
            ORDER BY ordinal
            RETURNING id, ordinal, length
            """,
            parameters,
        )
        rows = cursor.fetchall()
    copy_vectors(((pk, document.pk, document.collection_id, vectors[ordinal]) for pk, ordinal, _ in rows), embedder)
    return [(pk, length) for pk, _, length in rows]


# BM25 weights are computed again if the mean length of passages changed by more than this share.
LARGEST_DRIFT = 0.1
_PLACE = ("start", "end", "page", "blocks")


def lock_collection_statistics(collection_id: int) -> CollectionStatistics:
    CollectionStatistics.objects.bulk_create([CollectionStatistics(collection_id=collection_id)], ignore_conflicts=True)
    return CollectionStatistics.objects.select_for_update().get(pk=collection_id)


def replace_chunks(document: Document, chunks: Sequence[NewChunk], embedder: Embedder, *, keep: bool) -> int:
    """Replace the document's stored passages by ``chunks``, and return how many old ones were kept.

    If ``keep`` is true, unchanged passages keep their ids, so that citations stay valid; all others need a ``vector``.
    Must run in a transaction that has locked the document.

    Raises: EmbedderMisconfigured if another embedder is active now.
    """
    own = document.chunks.order_by("ordinal")
    old_ids = set(own.values_list("pk", flat=True))
    written = {
        chunk.content_hash: tuple(chunk.canonical_questions)
        for chunk in own.filter(questions_edited=True).only("content_hash", "canonical_questions")
    }
    old = defaultdict(list)
    if keep:
        encoded = own.filter(embeddings__embedder=embedder, embeddings__document=document)
        for chunk in encoded.only("id", "content_hash"):
            old[chunk.content_hash].append(chunk.pk)
    moved: list[Chunk] = []
    added: list[tuple[int, NewChunk]] = []
    for ordinal, new in enumerate(chunks):
        if old[new.content_hash]:
            places = {name: getattr(new, name) for name in _PLACE}
            moved.append(Chunk(pk=old[new.content_hash].pop(0), ordinal=ordinal, **places))
        elif new.content_hash in written:
            added.append((ordinal, replace(new, questions=written[new.content_hash], questions_edited=True)))
        else:
            added.append((ordinal, new))
    # The statistics are locked after the slow work, so that documents can be written in parallel.
    configuration = find_text_search_configuration(document)
    weighed_by = _find_reference_length(document, added, configuration)
    rows = insert_chunks(document, added, embedder, weighed_by, configuration)
    ids = [pk for pk, _ in rows]
    statistics = lock_collection_statistics(document.collection_id)
    # `reembedding.switch_embedder` locks the statistics too, so the active embedder cannot change now.
    if (active := Embedder.objects.get(is_active=True)) != embedder:
        raise EmbedderMisconfigured(
            f"The passages were encoded by {embedder.name}, and {active.name} is searched by now."
        )
    if not statistics.chunks and added:
        statistics.reference_length = weighed_by
        statistics.weighting = describe_bm25_parameters()
    elif statistics.reference_length != weighed_by:
        _compute_term_weights(Chunk.objects.filter(pk__in=ids), statistics.reference_length)
    Chunk.objects.bulk_update(moved, ["ordinal", *_PLACE], batch_size=500)
    delete_chunks(statistics, sorted(old_ids - {chunk.pk for chunk in moved}))
    statistics.chunks += len(rows)
    statistics.total_length += sum(length for _, length in rows)
    if added:
        add_text_search_configurations(statistics, [configuration])
    update_document_frequencies(ids, sign=1)
    statistics.version += 1
    statistics.save()
    return len(moved)


def _find_reference_length(document: Document, added: Sequence[tuple[int, NewChunk]], configuration: str) -> float:
    known = CollectionStatistics.objects.filter(pk=document.collection_id, chunks__gt=0).first()
    if known is not None:
        return known.reference_length
    statistics = lock_collection_statistics(document.collection_id)
    return (
        statistics.reference_length if statistics.chunks else compute_mean_chunk_length(document, added, configuration)
    )


def remove_chunks(document: Document) -> None:
    with transaction.atomic():
        # To avoid deadlocks, every writer locks the document first, then the statistics.
        Document.objects.select_for_update().filter(pk=document.pk).first()
        statistics = lock_collection_statistics(document.collection_id)
        delete_chunks(statistics, list(document.chunks.values_list("pk", flat=True)))
        statistics.version += 1
        statistics.save()


def replace_chunk_questions(chunk: Chunk, questions: Sequence[str]) -> None:
    """Replace the questions that a curator entered for a passage, in one transaction.

    Raises: Chunk.DoesNotExist if the document no longer has the passage.
    """
    with transaction.atomic():
        document = (
            Document.objects.select_for_update(of=("self",)).select_related("collection").get(pk=chunk.document_id)
        )
        statistics = lock_collection_statistics(document.collection_id)
        stored = document.chunks.get(pk=chunk.pk)
        update_document_frequencies([stored.pk], sign=-1)
        with connection.cursor() as cursor:
            cursor.execute(
                f"""
                WITH fresh AS MATERIALIZED ({VECTORS})
                UPDATE retrieval_chunk
                SET canonical_questions = %(asked)s::text[], questions_edited = true,
                    search_vector = fresh.search_vector,
                    bm25 = retrieval_bm25_weights(fresh.search_vector, %(boosts)s, %(k1)s, %(b)s, %(reference_length)s),
                    length = retrieval_bm25_length(fresh.search_vector, %(boosts)s)
                FROM fresh
                WHERE id = %(id)s
                RETURNING length
                """,
                build_search_vector_parameters(
                    document,
                    [(stored.ordinal, stored.heading_path, questions, stored.content)],
                    stored.configuration or find_text_search_configuration(document),
                )
                # If the statistics were lost, the length is 1 until `reconcile` repairs them.
                | {"id": stored.pk, "asked": list(questions), "reference_length": statistics.reference_length or 1.0},
            )
            length = cursor.fetchone()[0]
        update_document_frequencies([stored.pk], sign=1)
        statistics.total_length = max(0.0, statistics.total_length + length - stored.length)
        statistics.version += 1
        statistics.save()


def recompute_term_weights(collection: Collection, *, largest_drift: float = LARGEST_DRIFT) -> bool:
    """Compute the collection's BM25 weights again if they are out of date, and return whether they were.

    They are out of date if the weighting has changed, or if the mean length of passages has changed by more than the
    share ``largest_drift``.
    """
    with transaction.atomic():
        statistics = lock_collection_statistics(collection.pk)
        chunks = Chunk.objects.filter(collection=collection)
        changed = statistics.weighting != describe_bm25_parameters()
        if changed and statistics.chunks:
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE retrieval_chunk SET length = retrieval_bm25_length(search_vector, %s) "
                    "WHERE collection_id = %s",
                    [FIELD_BOOSTS, collection.pk],
                )
            statistics.total_length = chunks.aggregate(total=Sum("length"))["total"]
        mean = statistics.mean_length
        drifted = abs(mean - statistics.reference_length) > largest_drift * statistics.reference_length
        if not mean or not (changed or drifted):
            return False
        statistics.reference_length = mean
        statistics.weighting = describe_bm25_parameters()
        statistics.version += 1
        statistics.save()
        _compute_term_weights(chunks, mean)
    return True


def _compute_term_weights(chunks: QuerySet[Chunk], reference_length: float) -> None:
    chunks.update(
        bm25=Func(
            F("search_vector"),
            Value(FIELD_BOOSTS, ArrayField(FloatField())),
            Value(settings.BM25_K1),
            Value(settings.BM25_B),
            Value(reference_length),
            function="retrieval_bm25_weights",
        )
    )


def refresh_planner_statistics() -> None:
    """Update the planner's statistics and the GIN indexes, so that searches do not scan the whole table."""
    flush_gin_pending_lists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT gin_clean_pending_list('table_row_labels')")
        cursor.execute(
            "ANALYZE retrieval_chunk, retrieval_chunkembedding, retrieval_lexeme, retrieval_table, retrieval_tablerow"
        )


def delete_chunks(statistics: CollectionStatistics, chunk_ids: list[int]) -> None:
    """Delete the passages, and subtract them from ``statistics``, which the caller must lock and save."""
    if not chunk_ids:
        return
    update_document_frequencies(chunk_ids, sign=-1)
    lengths = list(Chunk.objects.filter(pk__in=chunk_ids).values_list("length", flat=True))
    if statistics.chunks < len(lengths):
        logger.warning("%s, fewer than are removed: run `manage.py reconcile --repair`.", statistics)
    statistics.chunks = max(0, statistics.chunks - len(lengths))
    statistics.total_length = max(0.0, statistics.total_length - sum(lengths)) if statistics.chunks else 0.0
    Chunk.objects.filter(pk__in=chunk_ids).delete()


def update_document_frequencies(chunk_ids: list[int], *, sign: int) -> None:
    """Add the passages' words to the document frequencies (``sign`` 1), or subtract them (-1).

    The caller must lock the statistics.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH counted AS (
                SELECT collection_id, lexeme, count(*) AS chunks
                FROM retrieval_chunk, unnest(search_vector) AS term(lexeme, positions, labels)
                WHERE id = ANY(%s)
                GROUP BY collection_id, lexeme
            ), fresh AS (
                SELECT collection_id, lexeme, coalesce(document_frequency, 0) + %s * chunks AS frequency
                FROM counted LEFT JOIN retrieval_lexeme USING (collection_id, lexeme)
            ), gone AS (
                DELETE FROM retrieval_lexeme AS known USING fresh
                WHERE (known.collection_id, known.lexeme) = (fresh.collection_id, fresh.lexeme) AND frequency <= 0
            ), changed AS (
                INSERT INTO retrieval_lexeme (collection_id, lexeme, document_frequency)
                SELECT collection_id, lexeme, frequency FROM fresh WHERE frequency > 0 ORDER BY collection_id, lexeme
                ON CONFLICT (collection_id, lexeme) DO UPDATE SET document_frequency = excluded.document_frequency
            )
            SELECT count(*) FROM fresh WHERE frequency < 0
            """,
            [chunk_ids, sign],
        )
        if drifted := cursor.fetchone()[0]:
            logger.warning("%d word counts were too low: run `manage.py reconcile --repair`.", drifted)
