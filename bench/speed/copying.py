"""Writes a synthetic corpus with COPY, its terms and their weights worked out here: minutes where the site's writer,
which reduces each passage in SQL, takes hours. What search reads afterwards is the same.

Where nothing else is indexed, the two large indexes are dropped before and made afterwards: kept row by row, they take
most of the time.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import connection, transaction

from bench.bulk import NewDocument, save_documents
from bench.reporting import Report
from bench.speed.texts import SyntheticDocument, SyntheticPassage, Vectors
from retrieval.dense.index import create_index, drop_index
from retrieval.ingest.chunking import content_hash
from retrieval.ingest.writing import lock_statistics, weighting
from retrieval.models import Chunk, Collection, Embedder
from retrieval.text.terms import DIMENSIONS, lexeme_dimension

BATCH = 2000
_COPY_CHUNKS = """
    COPY retrieval_chunk (id, document_id, collection_id, ordinal, start, "end", heading_path, content, content_hash,
        token_count, canonical_questions, search_vector, bm25, length) FROM STDIN
"""
_COPY_VECTORS = """
    COPY retrieval_chunkembedding (chunk_id, document_id, collection_id, embedder_id, vector, token_signs)
    FROM STDIN (FORMAT BINARY)
"""


class _Terms:
    """The lexemes of words, each with its dimension; asked of PostgreSQL once."""

    def __init__(self, configuration: str, words: Sequence[str]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT word, (tsvector_to_array(to_tsvector(%s::regconfig, word)))[1] FROM unnest(%s::text[]) AS word",
                [configuration, list(words)],
            )
            # None is a stop word: it takes a place, and is not indexed.
            self.of: dict[str, str | None] = dict(cursor.fetchall())
        self.dimensions = {lexeme: lexeme_dimension(lexeme) for lexeme in self.of.values() if lexeme is not None}

    def read(self, title: str, passage: SyntheticPassage) -> dict[str, list[str]]:
        """The places of each lexeme, in the notation of a search vector."""
        places: dict[str, list[str]] = defaultdict(list)
        before = 0
        for text, label in ((title, "A"), (passage.heading, "B"), (passage.text, "")):
            words = text.replace(".", "").lower().split()
            for place, word in enumerate(words, before + 1):
                lexeme = self.of[word]
                if lexeme is not None:
                    places[lexeme].append(f"{place}{label}")
            before += len(words)
        return places


@dataclass(frozen=True, slots=True)
class _Placed:
    """A passage in its document, the ``ordinal``-th one, with the places of its lexemes."""

    document: int
    ordinal: int
    passage: SyntheticPassage
    places: dict[str, list[str]]

    @property
    def length(self) -> int:
        return sum(map(len, self.places.values()))


def copy_corpus(
    collection: Collection,
    documents: Sequence[SyntheticDocument],
    vocabulary: Sequence[str],
    vectors: Vectors,
    token_signs: Sequence[bytes | None],
    embedder: Embedder,
    index_fingerprint: str,
    report: Report,
) -> None:
    """Make the documents those of ``collection``, which is empty, in one transaction.

    Where no other collection has passages, the large indexes are gone afterwards: see :func:`make_indexes`.
    """
    terms = _Terms(str(collection.text_search_configuration), vocabulary)
    with transaction.atomic():
        if not Chunk.objects.exists():
            _drop_indexes(embedder)
        described = [_described(number, each, index_fingerprint) for number, each in enumerate(documents)]
        placed = [
            _Placed(saved.pk, ordinal, passage, terms.read(document.title, passage))
            for saved, document in zip(save_documents(collection, described), documents, strict=True)
            for ordinal, passage in enumerate(document.passages)
        ]
        statistics = lock_statistics(collection.pk)
        statistics.chunks, statistics.total_length = len(placed), float(sum(each.length for each in placed))
        statistics.reference_length = statistics.mean_length
        statistics.weighting = weighting()
        statistics.version += 1
        statistics.save()
        with connection.cursor() as cursor:
            cursor.execute("SELECT nextval(pg_get_serial_sequence('retrieval_chunk', 'id'))")
            first = cursor.fetchone()[0]
            cursor.execute("SELECT setval(pg_get_serial_sequence('retrieval_chunk', 'id'), %s)", [first + len(placed)])
            raw = cursor.connection.cursor()
            with raw.copy(_COPY_CHUNKS) as copy:
                for row in _chunk_rows(first, collection.pk, placed, terms, statistics.reference_length, report):
                    copy.write(row)
            with raw.copy(_COPY_VECTORS) as copy:
                copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
                for sent in _vector_rows(first, collection.pk, embedder.pk, placed, vectors, token_signs, report):
                    copy.write(sent)
                copy.write(struct.pack("!h", -1))
            with raw.copy("COPY retrieval_lexeme (collection_id, lexeme, document_frequency) FROM STDIN") as copy:
                for lexeme, frequency in Counter(lexeme for each in placed for lexeme in each.places).items():
                    copy.write_row((collection.pk, lexeme, frequency))
            cursor.execute(
                "UPDATE retrieval_document SET chunk_count = counted.number FROM "
                "(SELECT document_id, count(*) AS number FROM retrieval_chunk GROUP BY document_id) AS counted "
                "WHERE id = counted.document_id AND collection_id = %s",
                [collection.pk],
            )


def _chunk_rows(
    first: int, collection: int, placed: Sequence[_Placed], terms: _Terms, reference_length: float, report: Report
) -> Iterator[str]:
    """Lines of COPY's text form; the made-up words need no escaping."""
    start = 0
    for number, each in enumerate(placed):
        if number % BATCH == 0:
            report("writing passages", number, len(placed))
        text, heading = each.passage.text, each.passage.heading
        start = start if each.ordinal else 0
        end = start + len(text)
        vector = " ".join(f"'{lexeme}':{','.join(at)}" for lexeme, at in each.places.items())
        weights = _weights(each, terms, reference_length)
        # Counted in words: nothing here is cut or assembled by it.
        tokens = text.count(" ") + 1
        yield (
            f'{first + number}\t{each.document}\t{collection}\t{each.ordinal}\t{start}\t{end}\t{{"{heading}"}}\t'
            f"{text}\t{content_hash(text, (heading,))}\t{tokens}\t{{}}\t{vector}\t{weights}\t{each.length}\n"
        )
        start = end + 2


def _vector_rows(
    first: int,
    collection: int,
    embedder: int,
    placed: Sequence[_Placed],
    vectors: Vectors,
    token_signs: Sequence[bytes | None],
    report: Report,
) -> Iterator[bytes]:
    """Rows of COPY's binary form: the number of fields, then each with its length before it."""
    header = struct.pack("!HH", vectors.shape[1], 0)
    for number, (each, vector) in enumerate(zip(placed, vectors.astype(">f2"), strict=True)):
        if number % BATCH == 0:
            report("writing vectors", number, len(placed))
        keys = (first + number, each.document, collection, embedder)
        sent = header + vector.tobytes()
        signs = token_signs[number % len(token_signs)]
        row = [struct.pack("!h", 6), *(struct.pack("!iq", 8, key) for key in keys), struct.pack("!i", len(sent)), sent]
        row += [struct.pack("!i", -1)] if signs is None else [struct.pack("!i", len(signs)), signs]
        yield b"".join(row)


def _described(number: int, document: SyntheticDocument, index_fingerprint: str) -> NewDocument:
    text = "\n\n".join(passage.text for passage in document.passages)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return NewDocument(f"synthetic-{number:06d}", document.title, "en", text, digest, index_fingerprint, ())


def _weights(placed: _Placed, terms: _Terms, reference_length: float) -> str:
    k1, b = settings.BM25_K1, settings.BM25_B
    norm = k1 * (1 - b + b * placed.length / reference_length)
    weights: dict[int, float] = defaultdict(float)
    for lexeme, at in placed.places.items():
        weights[terms.dimensions[lexeme]] += len(at) * (k1 + 1) / (len(at) + norm)
    listed = ",".join(f"{dimension}:{np.float32(weights[dimension])}" for dimension in sorted(weights))
    return f"{{{listed}}}/{DIMENSIONS}"


def _drop_indexes(embedder: Embedder) -> None:
    with connection.schema_editor() as editor:
        editor.execute(f"DROP INDEX IF EXISTS {_words_index().name}")
    drop_index(embedder)


def make_indexes(embedder: Embedder) -> None:
    """Make those of the two large indexes that are missing."""
    with connection.schema_editor() as editor:
        editor.execute(str(_words_index().create_sql(Chunk, editor)).replace("INDEX", "INDEX IF NOT EXISTS", 1))
    create_index(embedder)


def _words_index() -> GinIndex:
    (index,) = (index for index in Chunk._meta.indexes if isinstance(index, GinIndex))
    return index
