"""Measuring search itself on test sets: a corpus goes into a collection of its own, and its queries through `search()`.

What is measured is what users get, down to the SQL; only the documents differ.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.db import connection
from django.utils.text import slugify

from evaluation import metrics
from evaluation.beir import CorpusDocument, JudgedQuery, TestSet
from evaluation.exceptions import EvaluationError, UntrustworthyRun
from evaluation.metrics import Interval
from retrieval import conf
from retrieval.dense.active import active_embedder
from retrieval.exceptions import DocumentRejected
from retrieval.ingest import chunking, extraction
from retrieval.ingest.bulk import NewDocument, replace_documents
from retrieval.ingest.language import detect_language
from retrieval.ingest.pipeline import EMBEDDING_BATCH, LARGEST_CHUNK_TOKENS
from retrieval.ingest.writing import NewChunk
from retrieval.lexical.sql import FIELD_BOOSTS
from retrieval.lexical.terms import ANALYSIS_VERSION
from retrieval.models import (
    Chunk,
    ChunkEmbedding,
    Collection,
    CollectionStatistics,
    Document,
    DocumentText,
    Embedder,
)
from retrieval.models.collection import TextSearchConfiguration
from retrieval.search import search
from retrieval.types import LegStatus, SearchFilters, SearchMethod, SearchResult

# Changing how a corpus is loaded changes this number; collections loaded another way are loaded again.
LOADING_VERSION = 1
DEFAULT = "default"
METHODS = (*(method.value for method in SearchMethod), DEFAULT)
RERANKERS = ("none",)
# Chunks asked of each search: what recall@50 needs.
TOP_K = 50
LONGEST_TITLE = 500

CONFIGURATION_BY_CODE = {
    "en": TextSearchConfiguration.ENGLISH,
    "nl": TextSearchConfiguration.DUTCH,
    "de": TextSearchConfiguration.GERMAN,
    "fr": TextSearchConfiguration.FRENCH,
    "es": TextSearchConfiguration.SPANISH,
    "it": TextSearchConfiguration.ITALIAN,
    "pt": TextSearchConfiguration.PORTUGUESE,
    "da": TextSearchConfiguration.DANISH,
    "sv": TextSearchConfiguration.SWEDISH,
    "no": TextSearchConfiguration.NORWEGIAN,
    "fi": TextSearchConfiguration.FINNISH,
}

METRICS: Mapping[str, Callable[[Sequence[str], Mapping[str, int]], float]] = {
    "ndcg@10": lambda ranking, grades: metrics.ndcg(ranking, grades, 10),
    "hit@10": lambda ranking, grades: metrics.hit(ranking, grades, 10),
    "recall@50": lambda ranking, grades: metrics.recall(ranking, grades, 50),
    "mrr@10": lambda ranking, grades: metrics.reciprocal_rank(ranking, grades, 10),
}

Report = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    p50: float
    p95: float


@dataclass(slots=True)
class MethodRun:
    """What one method did on one set: a value a query for each metric, and milliseconds a query for each stage."""

    scores: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in METRICS})
    milliseconds: dict[str, list[float]] = field(default_factory=dict)

    def interval(self, metric: str) -> Interval:
        return metrics.mean_interval(self.scores[metric])

    def latency(self) -> dict[str, Percentiles]:
        """Of each stage that ran, and of the whole search as `total`, which stands last."""
        stages = sorted(self.milliseconds, key=lambda stage: stage == "total")
        return {
            stage: Percentiles(
                metrics.percentile(self.milliseconds[stage], 50), metrics.percentile(self.milliseconds[stage], 95)
            )
            for stage in stages
        }


@dataclass(frozen=True, slots=True)
class SetRun:
    """One set, searched with each method."""

    name: str
    documents: int
    queries: int
    methods: Mapping[str, MethodRun]


def check_depth() -> None:
    """Raises: EvaluationError when the site's settings do not let a search go as deep as the metrics look."""
    if settings.RETRIEVAL_DEPTH < TOP_K:
        raise EvaluationError(f"recall@{TOP_K} needs RETRIEVAL_DEPTH to be at least {TOP_K}: raise it for this run.")


def configuration_of(test_set: TestSet, language: str = "") -> str:
    """The text-search configuration of a set: the one asked for, or by what it says of itself, or by its name's end.

    English when nothing tells. Raises: EvaluationError for a language that the site does not have.
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


def load(test_set: TestSet, *, configuration: str, chunked: bool, report: Report) -> Collection:
    """The collection that holds the set's corpus, loaded unless it does so already, the way it would be loaded now.

    Without ``chunked`` a document is one chunk, which published figures assume; the embedder reads its beginning. With
    it, documents are cut as the site cuts uploaded text. The collection is not public. All of a corpus appears in one
    transaction, so that an interrupted run leaves the collection as it was.
    """
    collection, _ = Collection.objects.update_or_create(
        slug=_slug(test_set.name, chunked),
        defaults={"text_search_configuration": configuration},
        create_defaults={
            "name": f"Test set {test_set.name}{', chunked' if chunked else ''}"[:200],
            "description": "Loaded by `manage.py evaluate_retrieval`; can be deleted.",
            "text_search_configuration": configuration,
            "is_public": False,
        },
    )
    embedder = active_embedder()
    recipe = _recipe(embedder, configuration, chunked)
    if _is_loaded(collection, test_set.documents, recipe, embedder):
        return collection
    code = next((code for code, name in CONFIGURATION_BY_CODE.items() if name == configuration), "")
    cut = _chunks if chunked else _one_chunk
    prepared = []
    for done, document in enumerate(test_set.documents):
        if chunked and done % 50 == 0:
            report(f"{test_set.name}: cutting", done, len(test_set.documents))
        prepared.append(_prepared(document, code, recipe, cut))
    prepared = _with_vectors(collection, prepared, embedder, lambda *at: report(f"{test_set.name}: embedding", *at))
    replace_documents(collection, prepared, embedder, lambda *at: report(f"{test_set.name}: writing", *at))
    _settle()
    return collection


def run(
    test_set: TestSet, collection: Collection, methods: Sequence[str], *, limit: int | None, report: Report
) -> SetRun:
    """Each of the first ``limit`` queries searched with each method.

    Methods take turns at being first, so that none profits from what another has warmed. Raises: UntrustworthyRun when a
    leg did not answer, or the collection changed meanwhile, and whatever `search()` raises.
    """
    queries = test_set.queries[:limit]
    version = _version(collection)
    filters = SearchFilters(collections=(collection.pk,))
    runs = {name: MethodRun() for name in methods}
    for name in methods:
        _search(queries[0], name, filters)  # loads the model and opens connections; not measured
    for number, query in enumerate(queries):
        report(f"{test_set.name}: searching", number, len(queries))
        first = number % len(methods)
        for name in (*methods[first:], *methods[:first]):
            _measure(runs[name], query, _search(query, name, filters))
    if _version(collection) != version:
        raise UntrustworthyRun(f"The collection {collection.slug} changed while it was searched: run it again.")
    return SetRun(test_set.name, len(test_set.documents), len(queries), runs)


def ranked_documents(result: SearchResult) -> list[str]:
    """The corpus's identifiers of the documents found, each where its best chunk stands."""
    return list(dict.fromkeys(hit.passage.source for hit in result.hits))


def _search(query: JudgedQuery, method: str, filters: SearchFilters) -> SearchResult:
    result = search(query.text, filters, method=None if method == DEFAULT else SearchMethod(method), top_k=TOP_K)
    if result.trace.degraded:
        errors = "; ".join(leg.error for leg in result.trace.legs if leg.error)
        raise UntrustworthyRun(f"Query {query.id} was not searched with all of {method}: {errors}")
    return result


def _measure(run: MethodRun, query: JudgedQuery, result: SearchResult) -> None:
    ranking = ranked_documents(result)
    for name, metric in METRICS.items():
        run.scores[name].append(metric(ranking, query.grades))
    off = {leg.leg.value for leg in result.trace.legs if leg.status is LegStatus.OFF}
    for stage, milliseconds in result.trace.timings_ms.items():
        if stage not in off:
            run.milliseconds.setdefault(stage, []).append(milliseconds)


def _slug(name: str, chunked: bool) -> str:
    # Names that become equal share a collection in turn: what is in it decides whether it is loaded, not its name.
    ending = "-chunked" if chunked else ""
    return f"beir-{slugify(name)[: 45 - len(ending)]}{ending}"


def _version(collection: Collection) -> int:
    return CollectionStatistics.objects.get(pk=collection.pk).version


def _recipe(embedder: Embedder, configuration: str, chunked: bool) -> str:
    """Fingerprint of all that shapes what search reads of a document, beside the document."""
    parts = (
        LOADING_VERSION,
        ANALYSIS_VERSION,
        chunking.CHUNKER_VERSION if chunked else "one chunk",
        embedder.name,
        configuration,
        FIELD_BOOSTS,
        settings.BM25_K1,
        settings.BM25_B,
        settings.QUESTION_GENERATOR if chunked else "",
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _fingerprint(document: CorpusDocument) -> str:
    return hashlib.sha256(f"{document.title}\x00{document.text}".encode()).hexdigest()


def _is_loaded(
    collection: Collection, documents: Sequence[CorpusDocument], recipe: str, embedder: Embedder
) -> bool:
    """Whether the collection holds exactly these documents, made by this recipe, and all their chunks."""
    stored = {
        source: (content_hash, made_by)
        for source, content_hash, made_by in DocumentText.objects.filter(document__collection=collection).values_list(
            "document__source", "content_hash", "recipe"
        )
    }
    if stored != {document.id: (_fingerprint(document), recipe) for document in documents}:
        return False
    promised = sum(Document.objects.filter(collection=collection).values_list("chunk_count", flat=True))
    statistics = CollectionStatistics.objects.filter(pk=collection.pk).first()
    chunks = Chunk.objects.filter(collection=collection).count()
    vectors = ChunkEmbedding.objects.filter(collection=collection, embedder=embedder).count()
    return statistics is not None and promised == statistics.chunks == chunks == vectors


def _prepared(
    document: CorpusDocument,
    language: str,
    recipe: str,
    cut: Callable[[str, str, str], tuple[str, tuple[NewChunk, ...]]],
) -> NewDocument:
    title = " ".join(document.title.split())[:LONGEST_TITLE]
    text, chunks = cut(title, document.text, language)
    return NewDocument(
        source=document.id,
        title=title,
        language=language,
        text=text,
        content_hash=_fingerprint(document),
        recipe=recipe,
        chunks=chunks,
    )


def _one_chunk(title: str, text: str, language: str) -> tuple[str, tuple[NewChunk, ...]]:
    """The whole text as one chunk; none for a document without title and text."""
    if not title and not text.strip():
        return text, ()
    chunk = NewChunk(
        start=0,
        end=len(text),
        page=None,
        heading_path=(),
        content=text,
        content_hash=chunking.content_hash(text, ()),
        token_count=conf.embedder().count_tokens([text])[0],
        questions=(),
        vector=None,
    )
    return text, (chunk,)


def _chunks(title: str, text: str, language: str) -> tuple[str, tuple[NewChunk, ...]]:
    """The chunks that ingestion would make of an uploaded text file; none when it would reject the file."""
    try:
        extracted = extraction.extract(text.encode(), f"{slugify(title) or 'document'}.txt")
    except DocumentRejected:
        return text, ()
    embedder = conf.embedder()
    questions = conf.question_generator()
    spoken = language or detect_language(extracted.text)
    # Titles come from the corpus alone: one made from a file's name would put words into the text that it lacks.
    extracted = extraction.ExtractedText(
        text=extracted.text,
        media_type=extracted.media_type,
        title=title,
        sections=extracted.sections,
        protected=extracted.protected,
    )
    pieces = chunking.chunk(extracted, embedder.count_tokens, min(embedder.max_tokens, LARGEST_CHUNK_TOKENS))
    tokens = embedder.count_tokens([piece.text for piece in pieces])
    return extracted.text, tuple(
        NewChunk(
            start=piece.start,
            end=piece.end,
            page=piece.page,
            heading_path=piece.heading_path,
            content=piece.text,
            content_hash=chunking.content_hash(piece.text, piece.heading_path),
            token_count=count,
            questions=tuple(questions.generate(piece.text, piece.heading_path, spoken)),
            vector=None,
        )
        for piece, count in zip(pieces, tokens, strict=True)
    )


def _with_vectors(
    collection: Collection,
    documents: Sequence[NewDocument],
    embedder: Embedder,
    progress: Callable[[int, int], None],
) -> list[NewDocument]:
    """``documents`` with a vector for each chunk: that of an equal chunk stored by an earlier load, or a fresh one."""
    stored: dict[tuple[str, str], npt.NDArray[np.float32]] = {
        (title, content_hash): vector.to_numpy()
        for title, content_hash, vector in ChunkEmbedding.objects.filter(
            collection=collection, embedder=embedder
        ).values_list("document__title", "chunk__content_hash", "vector")
    }
    missing: dict[tuple[str, str], str] = {}
    for document, chunk in _all_chunks(documents):
        key = (document.title, chunk.content_hash)
        if key not in stored:
            missing[key] = chunking.embedding_text(document.title, chunk.heading_path, chunk.content)
    keys, texts = list(missing), list(missing.values())
    for start in range(0, len(texts), EMBEDDING_BATCH):
        progress(start, len(texts))
        vectors = conf.embedder().embed_documents(texts[start : start + EMBEDDING_BATCH])
        stored.update(zip(keys[start : start + EMBEDDING_BATCH], vectors, strict=True))
    return [
        replace_chunks_of(document, [stored[document.title, chunk.content_hash] for chunk in document.chunks])
        for document in documents
    ]
