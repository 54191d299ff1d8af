from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from django.conf import settings
from django.utils.text import slugify

from bench.beir import CorpusDocument, TestSet
from bench.bulk import DocumentToWrite, compute_index_fingerprint, is_fully_indexed, replace_documents, vacuum_tables
from bench.reporting import Report
from evaluation.exceptions import EvaluationError
from retrieval import backends
from retrieval.documents import extraction
from retrieval.documents.ingestion import EMBEDDING_BATCH, LARGEST_CHUNK_TOKENS
from retrieval.exceptions import DocumentRejected
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import NewChunk
from retrieval.models import ChunkEmbedding, Collection, Document, DocumentText, Embedder, Visibility
from retrieval.models.collection import CONFIGURATION_BY_CODE, TextSearchConfiguration
from retrieval.text import chunking
from retrieval.text.language import identify_language

if TYPE_CHECKING:
    from retrieval.types import Vectors

# Increase this number when this module loads differently. Collections with another number are then loaded again.
LOADING_VERSION = 2
LONGEST_TITLE = 500
LONGEST_SLUG = 50
# Longer texts are cut. PostgreSQL allows 1 MB for a `tsvector`, and pgvector 16,000 terms for a `sparsevec`.
ONE_CHUNK_CHARACTERS = 20_000

_Cut = Callable[[str, str, str], tuple[str, tuple[NewChunk, ...]]]


def choose_configuration(test_set: TestSet, language: str = "") -> str:
    """Return the PostgreSQL text-search configuration for ``language``, or else for the test set.

    The set's language is in its description or at the end of its name; the default is English. Raises: EvaluationError
    for a language that the site does not have.
    """
    wanted = (language or test_set.language).casefold()
    if not wanted:
        ending = re.search(r"[_-]([a-z]{2})$", test_set.name.casefold())
        return CONFIGURATION_BY_CODE.get(ending[1] if ending else "", TextSearchConfiguration.ENGLISH).value
    if wanted in TextSearchConfiguration.values:
        return wanted
    if wanted not in CONFIGURATION_BY_CODE:
        raise EvaluationError(f"There is no language {wanted!r}: it is one of {', '.join(TextSearchConfiguration)}.")
    return CONFIGURATION_BY_CODE[wanted].value


def load_test_set_collection(test_set: TestSet, *, configuration: str, chunked: bool, report: Report) -> Collection:
    """Return a collection with the set's documents. Unless an equal one exists, it is written in one transaction.

    Each document is one chunk, as in published benchmark results; the embedder reads only the beginning of a chunk. If
    ``chunked``, documents are cut like uploaded text. The collection is not public.
    """
    collection, _ = Collection.objects.update_or_create(
        slug=_make_slug(test_set.name, chunked),
        defaults={"text_search_configuration": configuration},
        create_defaults={
            "name": f"Test set {test_set.name}{', chunked' if chunked else ''}"[:200],
            "description": "Loaded by `manage.py evaluate_retrieval`; can be deleted.",
            "text_search_configuration": configuration,
            "visibility": Visibility.STAFF,
        },
    )
    embedder = active_embedder()
    cutting = (chunking.CHUNKER_VERSION, settings.QUESTION_GENERATOR) if chunked else ("one chunk",)
    made_by = compute_index_fingerprint(collection, embedder, LOADING_VERSION, *cutting)
    if _is_loaded(collection, test_set.documents, made_by, embedder):
        return collection
    code = next((code for code, name in CONFIGURATION_BY_CODE.items() if name == configuration), "")
    cut = _cut_into_chunks if chunked else _make_one_chunk
    prepared = []
    for done, document in enumerate(test_set.documents):
        if chunked and done % 50 == 0:
            report(f"{test_set.name}: cutting", done, len(test_set.documents))
        prepared.append(_prepare_document(document, code, made_by, cut))
    prepared = _add_vectors(collection, prepared, embedder, lambda *at: report(f"{test_set.name}: embedding", *at))
    replace_documents(collection, _report_each_document(prepared, f"{test_set.name}: writing", report), embedder)
    vacuum_tables()
    return collection


def _make_slug(name: str, chunked: bool) -> str:
    start, end = "beir-", "-chunked" if chunked else ""
    return f"{start}{slugify(name)[: LONGEST_SLUG - len(start) - len(end)]}{end}"


def _hash_document(document: CorpusDocument) -> str:
    return hashlib.sha256(f"{document.title}\x00{document.text}".encode()).hexdigest()


def _is_loaded(collection: Collection, documents: Sequence[CorpusDocument], made_by: str, embedder: Embedder) -> bool:
    texts = DocumentText.objects.filter(document__collection=collection)
    stored = texts.values_list("document__source", "content_hash", "recipe")
    if set(stored) != {(document.id, _hash_document(document), made_by) for document in documents}:
        return False
    promised = Document.objects.filter(collection=collection).values_list("chunk_count", flat=True)
    return is_fully_indexed(collection, embedder, sum(promised))


def _prepare_document(document: CorpusDocument, language: str, made_by: str, cut: _Cut) -> DocumentToWrite:
    title = " ".join(document.title.split())[:LONGEST_TITLE]
    text, chunks = cut(title, document.text, language)
    return DocumentToWrite(
        source=document.id,
        title=title,
        language=language,
        text=text,
        content_hash=_hash_document(document),
        index_fingerprint=made_by,
        chunks=chunks,
    )


def _make_one_chunk(title: str, text: str, language: str) -> tuple[str, tuple[NewChunk, ...]]:
    if not title and not text.strip():
        return text, ()
    content = text[:ONE_CHUNK_CHARACTERS]
    chunk = NewChunk(
        start=0,
        end=len(content),
        page=None,
        heading_path=(),
        content=content,
        content_hash=chunking.hash_content(content, ()),
        token_count=embedder_choice.get_embedder().count_tokens([content])[0],
        questions=(),
        vector=None,
    )
    return text, (chunk,)


def _cut_into_chunks(title: str, text: str, language: str) -> tuple[str, tuple[NewChunk, ...]]:
    """Return the text and chunks as for an uploaded text file; no chunks if the site would reject the file."""
    try:
        extracted = extraction.extract(text.encode(), f"{slugify(title) or 'document'}.txt")
    except DocumentRejected:
        return text, ()
    # Each chunk's text for the embedder contains the title, so the title must be short enough too.
    extracted = replace(extracted, title=title)
    embedder = embedder_choice.get_embedder()
    questions = backends.get_question_generator()
    spoken = language or identify_language(extracted.text)
    pieces = chunking.split_into_chunks(
        extracted, embedder.count_tokens, min(embedder.max_tokens, LARGEST_CHUNK_TOKENS)
    )
    tokens = embedder.count_tokens([piece.text for piece in pieces])
    chunks = []
    for piece, token_count in zip(pieces, tokens, strict=True):
        repeats_title = piece.heading_path and piece.heading_path[0].casefold() == title.casefold()
        path = piece.heading_path[1:] if repeats_title else piece.heading_path
        chunks.append(
            NewChunk(
                start=piece.start,
                end=piece.end,
                page=piece.page,
                heading_path=path,
                content=piece.text,
                content_hash=chunking.hash_content(piece.text, path),
                token_count=token_count,
                questions=tuple(questions.generate(piece.text, piece.heading_path, spoken)) if questions else (),
                vector=None,
            )
        )
    return extracted.text, tuple(chunks)


def _add_vectors(
    collection: Collection,
    documents: Sequence[DocumentToWrite],
    embedder: Embedder,
    progress: Callable[[int, int], None],
) -> list[DocumentToWrite]:
    rows = ChunkEmbedding.objects.filter(collection=collection, embedder=embedder)
    stored: dict[tuple[str, str], Vectors] = {
        (title, content_hash): np.asarray(vector, dtype=np.float32)
        for title, content_hash, vector in rows.values_list("document__title", "chunk__content_hash", "vector")
    }
    missing = {
        (document.title, chunk.content_hash): chunking.build_embedding_text(
            document.title, chunk.heading_path, chunk.content
        )
        for document in documents
        for chunk in document.chunks
        if (document.title, chunk.content_hash) not in stored
    }
    keys, texts = list(missing), list(missing.values())
    for start in range(0, len(texts), EMBEDDING_BATCH):
        progress(start, len(texts))
        vectors = embedder_choice.get_embedder().embed_documents(texts[start : start + EMBEDDING_BATCH])
        stored.update(zip(keys[start : start + EMBEDDING_BATCH], vectors, strict=True))
    return [
        replace(
            document,
            chunks=tuple(
                replace(chunk, vector=stored[document.title, chunk.content_hash]) for chunk in document.chunks
            ),
        )
        for document in documents
    ]


def _report_each_document(documents: Sequence[DocumentToWrite], what: str, report: Report) -> Iterator[DocumentToWrite]:
    for number, document in enumerate(documents):
        report(what, number, len(documents))
        yield document
