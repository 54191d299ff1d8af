"""Writes a synthetic corpus with COPY, its terms and their weights worked out here: minutes where the site's writer,
which reduces each passage in SQL, takes hours. What search reads afterwards is the same.

Where nothing else is indexed, the two large indexes are dropped before and made afterwards: kept row by row, they take
most of the time.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import connection, transaction

from bench.bulk import NewDocument, save_documents
from bench.reporting import Report
from bench.speed.texts import SyntheticCorpus, SyntheticDocument, SyntheticPassage, Vectors
from retrieval.index.chunk_writer import lock_statistics, weighting
from retrieval.index.vector_index import build_index, drop_index
from retrieval.models import Chunk, Collection, Embedder
from retrieval.text.chunking import content_hash
from retrieval.text.terms import DIMENSIONS, lexeme_dimension

DOCUMENTS_A_BATCH = 100
VECTORS_A_BATCH = 2000
BETWEEN_PASSAGES = "\n\n"
_COPY_CHUNKS = """
    COPY retrieval_chunk (id, document_id, collection_id, ordinal, start, "end", heading_path, content, content_hash,
        token_count, canonical_questions, search_vector, bm25, length) FROM STDIN
"""
_COPY_VECTORS = """
    COPY retrieval_chunkembedding (chunk_id, document_id, collection_id, embedder_id, vector)
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
    """A passage in its document, the ``ordinal``-th one, which begins at ``start``, with the places of its lexemes."""

    document: int
    ordinal: int
    start: int
    passage: SyntheticPassage
    places: dict[str, list[str]]

    @property
    def length(self) -> int:
        return sum(map(len, self.places.values()))


def copy_corpus(
    collection: Collection,
    corpus: SyntheticCorpus,
    draw_vectors: Callable[[Sequence[int]], Vectors],
    embedder: Embedder,
    index_fingerprint: str,
    report: Report,
) -> None:
    """Make the corpus's documents those of ``collection``, which is empty, in one transaction and some hundred MiB of
    memory, whatever the size.

    Where no other collection has passages, the large indexes are gone afterwards: see :func:`make_indexes`.
    """
    terms = _Terms(str(collection.text_search_configuration), corpus.vocabulary)
    with transaction.atomic(), connection.cursor() as cursor:
        if not Chunk.objects.exists():
            _drop_indexes(embedder)
        statistics = lock_statistics(collection.pk)
        statistics.weighting = weighting()
        cursor.execute("SELECT nextval(pg_get_serial_sequence('retrieval_chunk', 'id'))")
        first = cursor.fetchone()[0]
        cursor.execute("SELECT setval(pg_get_serial_sequence('retrieval_chunk', 'id'), %s)", [first + corpus.size])
        raw = cursor.connection.cursor()
        written = _Written()
        for placed in _batches(collection, corpus, terms, index_fingerprint):
            if not statistics.reference_length:
                statistics.reference_length = sum(each.length for each in placed) / len(placed)
            report("writing passages", len(written.topics), corpus.size)
            with raw.copy(_COPY_CHUNKS) as copy:
                for number, each in enumerate(placed, first + len(written.topics)):
                    copy.write(_chunk_row(number, collection.pk, each, terms, statistics.reference_length))
            written.add(placed)
        with raw.copy(_COPY_VECTORS) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
            for sent in _vector_rows(first, collection.pk, embedder.pk, written, draw_vectors, report):
                copy.write(sent)
            copy.write(struct.pack("!h", -1))
        with raw.copy("COPY retrieval_lexeme (collection_id, lexeme, document_frequency) FROM STDIN") as copy:
            for lexeme, frequency in written.frequencies.items():
                copy.write_row((collection.pk, lexeme, frequency))
        statistics.chunks, statistics.total_length = len(written.topics), float(written.length)
        statistics.version += 1
        statistics.save()
        counted = Counter(written.documents)
        cursor.execute(
            "UPDATE retrieval_document SET chunk_count = number "
            "FROM unnest(%s::bigint[], %s::int[]) AS counted(document, number) WHERE id = document",
            [list(counted), list(counted.values())],
        )


@dataclass(slots=True)
class _Written:
    """What of the passages written so far is needed afterwards: their topics and documents, in order."""

    topics: list[int] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    length: int = 0
    frequencies: Counter[str] = field(default_factory=Counter)

    def add(self, placed: Sequence[_Placed]) -> None:
        self.topics += [each.passage.topic for each in placed]
        self.documents += [each.document for each in placed]
        self.length += sum(each.length for each in placed)
        self.frequencies.update(lexeme for each in placed for lexeme in each.places)


def _batches(
    collection: Collection, corpus: SyntheticCorpus, terms: _Terms, index_fingerprint: str
) -> Iterator[list[_Placed]]:
    """The passages of a hundred documents at a time, whose rows are saved."""
    numbered = enumerate(corpus.documents())
    while batch := list(islice(numbered, DOCUMENTS_A_BATCH)):
        described = [_described(number, document, index_fingerprint) for number, document in batch]
        yield [
            _Placed(saved.pk, ordinal, start, passage, terms.read(document.title, passage))
            for saved, (_, document) in zip(save_documents(collection, described), batch, strict=True)
            for ordinal, (start, passage) in enumerate(_starts(document.passages))
        ]


def _starts(passages: Sequence[SyntheticPassage]) -> Iterator[tuple[int, SyntheticPassage]]:
    """Each with where it begins in its document's text."""
    start = 0
    for passage in passages:
        yield start, passage
        start += len(passage.text) + len(BETWEEN_PASSAGES)


def _chunk_row(number: int, collection: int, placed: _Placed, terms: _Terms, reference_length: float) -> str:
    """A line of COPY's text form; the made-up words need no escaping."""
    text, heading = placed.passage.text, placed.passage.heading
    vector = " ".join(f"'{lexeme}':{','.join(at)}" for lexeme, at in placed.places.items())
    # Counted in words: nothing here is cut or assembled by it.
    tokens = text.count(" ") + 1
    return (
        f"{number}\t{placed.document}\t{collection}\t{placed.ordinal}\t{placed.start}\t{placed.start + len(text)}\t"
        f'{{"{heading}"}}\t{text}\t{content_hash(text, (heading,))}\t{tokens}\t{{}}\t{vector}\t'
        f"{_weights(placed, terms, reference_length)}\t{placed.length}\n"
    )


def _vector_rows(
    first: int,
    collection: int,
    embedder: int,
    written: _Written,
    draw_vectors: Callable[[Sequence[int]], Vectors],
    report: Report,
) -> Iterator[bytes]:
    """Rows of COPY's binary form: the number of fields, then each with its length before it."""
    for start in range(0, len(written.topics), VECTORS_A_BATCH):
        report("writing vectors", start, len(written.topics))
        vectors = draw_vectors(written.topics[start : start + VECTORS_A_BATCH]).astype(">f2")
        header = struct.pack("!HH", vectors.shape[1], 0)
        for number, vector in enumerate(vectors, start):
            sent = header + vector.tobytes()
            keys = (first + number, written.documents[number], collection, embedder)
            row = [struct.pack("!h", 5), *(struct.pack("!iq", 8, key) for key in keys)]
            row += [struct.pack("!i", len(sent)), sent]
            yield b"".join(row)


def _described(number: int, document: SyntheticDocument, index_fingerprint: str) -> NewDocument:
    text = BETWEEN_PASSAGES.join(passage.text for passage in document.passages)
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


def make_indexes(embedder: Embedder, report: Report) -> None:
    """Make those of the two large indexes that are missing."""
    report("index of words", 0, 1)
    with connection.schema_editor() as editor:
        editor.execute(str(_words_index().create_sql(Chunk, editor)).replace("INDEX", "INDEX IF NOT EXISTS", 1))
    build_index(embedder, report)


def _words_index() -> GinIndex:
    (index,) = (index for index in Chunk._meta.indexes if isinstance(index, GinIndex))
    return index
