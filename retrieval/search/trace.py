"""The result of a search: its passages, and the explanation of their order. Imports no Django."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from core.dataclass_json import OMIT_DEFAULT, json_name, to_json
from retrieval.types import Candidate, Passage, QueryClass, Reformulation, Retriever, RetrieverWeights


@dataclass(frozen=True, slots=True)
class Hit:
    rank: int
    passage: Passage
    candidate: Candidate

    @property
    def score(self) -> float:
        return self.candidate.score


class StageStatus(StrEnum):
    """The outcome of a retriever or reranker, whose results are used only if the outcome is `ok`."""

    OK = "ok"
    OFF = "off"
    FAILED = "failed"
    LATE = "late"

    @property
    def is_failure(self) -> bool:
        return self in (StageStatus.FAILED, StageStatus.LATE)


@dataclass(frozen=True, slots=True)
class IndexState:
    """The embedder, and the versions of the collections, at the time of a search.

    ``versions`` maps each collection's id, as text, to `CollectionStatistics.version`.
    """

    versions: Mapping[str, int]
    embedder: str = ""


@dataclass(frozen=True, slots=True)
class RetrieverTrace:
    retriever: Retriever = field(metadata=json_name("leg"))
    status: StageStatus
    returned: int = 0
    milliseconds: float = 0.0
    error: str = ""
    expansions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RerankTrace:
    reranker: str
    status: StageStatus
    judged: int
    weight: float | None
    depth: int
    milliseconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """The explanation of one search.

    ``profile`` is the name of the search settings, or empty. ``named_collections`` are slugs. ``joined_query`` is
    earlier questions followed by ``query``, or empty if earlier questions were not searched.
    :meth:`copy_without_errors` removes messages for staff.
    """

    question: str
    query: str
    query_class: QueryClass
    rule: str
    search_method: str
    profile: str
    weights: RetrieverWeights
    depth: int = 0
    top_k: int = 0
    rrf_k: int = 0
    score_threshold: float | None = None
    retrievers: tuple[RetrieverTrace, ...] = field(default=(), metadata=json_name("legs"))
    rerank: RerankTrace | None = None
    reformulation: Reformulation | None = None
    candidates: tuple[Candidate, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    is_partly_encoded: bool = field(default=False, metadata=OMIT_DEFAULT)
    named_collections: tuple[str, ...] = field(default=(), metadata=OMIT_DEFAULT)
    joined_query: str = field(default="", metadata=OMIT_DEFAULT)

    @property
    def best_query(self) -> str:
        """``query`` or ``joined_query``, whichever ranked the best hit higher."""
        best = next((candidate for candidate in self.candidates if candidate.rank == 1), None)
        return best.best_query if best is not None and best.searches else self.query

    @property
    def degraded(self) -> tuple[str, ...]:
        """The names of failed retrievers, `rerank` if it failed, and `unencoded` if some documents lack vectors."""
        failed = [each.retriever.value for each in self.retrievers if each.status.is_failure]
        if self.rerank is not None and self.rerank.status.is_failure:
            failed.append("rerank")
        return (*failed, "unencoded") if self.is_partly_encoded else tuple(failed)

    def copy_without_errors(self) -> Self:
        return replace(
            self,
            retrievers=tuple(replace(each, error="") for each in self.retrievers),
            rerank=self.rerank and replace(self.rerank, error=""),
            reformulation=self.reformulation and replace(self.reformulation, notice=""),
        )


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[Hit, ...]
    trace: SearchTrace


def convert_hit_to_json(hit: Hit) -> dict[str, object]:
    passage = hit.passage
    candidate = to_json(hit.candidate)
    del candidate["dropped"]
    return {
        **candidate,
        "rank": hit.rank,
        "document": {
            "id": passage.document_id,
            "title": passage.document_title,
            "url": passage.document_url,
            "collection": passage.collection,
        },
        "section": passage.section,
        "page": passage.page,
        "page_unit": passage.page_unit,
        "content": passage.content,
        "start": passage.start,
        "end": passage.end,
    }
