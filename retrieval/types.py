"""The vocabulary of retrieval: what travels between its stages.

Pure Python, frozen, and free of Django, so that every rule that ranks can be tested in milliseconds.
Ranks start at 1. A score is better when higher. ``None`` means "this retriever did not return the chunk",
never zero: a chunk that a retriever did not return contributes nothing there, and no rank is made up for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING

from core.dataclass_json import OMIT_DEFAULT, json_name
from retrieval.text.block import Block

# What a search finds, as a reader sees it: passages, and the context that is put together of them.


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with what is needed to show and cite it. ``content`` is the document's ``text[start:end]``.

    ``blocks`` are those of the document that hold some of it, at offsets of the document: they can begin before the
    passage, and end after it. ``page_unit`` is what a page of the document is: "page", or "slide". ``collection`` is
    the collection's slug, ``collection_name`` what readers call it.
    """

    chunk_id: int
    document_id: int
    document_title: str
    document_url: str
    source: str
    collection: str
    ordinal: int
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    content: str
    content_hash: str
    token_count: int
    blocks: tuple[Block, ...] = ()
    page_unit: str = "page"
    collection_name: str = ""

    @property
    def section(self) -> str:
        """Headings above the passage, outermost first; empty when there are none."""
        return " › ".join(self.heading_path)

    @property
    def page_name(self) -> str:
        """Such as "page 3", in English; empty where there are no pages."""
        return f"{self.page_unit} {self.page}" if self.page else ""


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A stretch of one document that goes into the context: a hit, what it was merged with, and its neighbours.

    ``content`` is the document's ``text[start:end]``, but for the kind of white space between two passages.
    ``passages`` are those it was put together from, in reading order; ``best`` is the one that ranked highest.
    ``blocks`` are the blocks of the document that hold some of it, at offsets of the document, in reading order.
    """

    best: Passage
    passages: tuple[Passage, ...]
    content: str
    start: int
    end: int
    score: float
    tokens: int
    blocks: tuple[Block, ...] = ()

    def passage_at(self, offset: int) -> Passage:
        """The passage that holds this offset of the document; ``best`` where none does."""
        if self.best.start <= offset < self.best.end:
            return self.best
        return next((passage for passage in self.passages if passage.start <= offset < passage.end), self.best)


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """Blocks in the order in which they are numbered and shown to a model, and how they came about."""

    blocks: tuple[ContextBlock, ...]
    statistics: Mapping[str, int]


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]


class QueryClass(StrEnum):
    """What kind of question this is; chooses the weights of the `adaptive` method."""

    CONCEPTUAL = "conceptual"
    CODE = "code"
    TROUBLESHOOTING = "troubleshooting"
    COMPARISON = "comparison"
    DEFAULT = "default"


class SearchMethod(StrEnum):
    """How the two retrievers become one ranking."""

    LEXICAL = "lexical"
    VECTOR = "vector"
    RRF = "rrf"
    LINEAR = "linear"
    ZSCORE = "zscore"
    WEIGHTED = "weighted"
    ADAPTIVE = "adaptive"


class Retriever(StrEnum):
    """One of the two rankings that are fused."""

    LEXICAL = "lexical"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class RetrieverWeights:
    """Share of each retriever in the fused score; non-negative, at least one positive."""

    vector: float
    lexical: float

    def __post_init__(self) -> None:
        if not (self.vector >= 0 and self.lexical >= 0 and self.vector + self.lexical > 0):
            raise ValueError(f"Weights must be non-negative and not both zero, not {self}.")

    def of(self, retriever: Retriever) -> float:
        return self.vector if retriever is Retriever.VECTOR else self.lexical


@dataclass(frozen=True, slots=True)
class Classification:
    """The class of a question and the rule that decided it, for the explanation."""

    query_class: QueryClass
    rule: str


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation and its answer, which is empty when there was none. ``documents`` and
    ``collections`` are those that the answer cites, by id and by slug. ``dialogue`` are the chat messages in which a
    language model was asked and answered; empty where none was."""

    question: str
    answer: str = ""
    documents: tuple[int, ...] = ()
    collections: tuple[str, ...] = ()
    dialogue: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Reformulation:
    """What is searched in place of what was asked.

    ``reason`` says what was done, empty when nothing was; ``by`` names who did it: "rules", or the model. ``notice``
    says why the model did not; it is for engineers, never for visitors. ``completed`` says that the model took from the
    conversation what a follow-up lacked; ``corrected`` that a word or a code of the question was misspelt.
    """

    query: str
    changed: bool
    reason: str
    by: str
    notice: str = ""
    completed: bool = field(default=False, metadata=OMIT_DEFAULT)
    corrected: bool = field(default=False, metadata=OMIT_DEFAULT)


@dataclass(frozen=True, slots=True)
class DateRange:
    """Days between ``first`` and ``last``, both included; None leaves that side open.

    ``field`` is `added` or `changed`, the document's own dates, or a key of its metadata whose value begins with a date
    in ISO form. Raises: ValueError for a range without an end, or one that ends before it begins.
    """

    field: str
    first: date | None = None
    last: date | None = None

    def __post_init__(self) -> None:
        if self.first is None and self.last is None:
            raise ValueError("A range of dates needs a first day, a last day, or both.")
        if self.first is not None and self.last is not None and self.first > self.last:
            raise ValueError(f"A range of dates must not end ({self.last}) before it begins ({self.first}).")


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who sees a narrowed document when it names one of their ``groups``, or lies in one of the
    ``collections``, of which they see all."""

    groups: tuple[str, ...] = ()
    collections: tuple[int, ...] = ()


# Sees no narrowed document.
ANYBODY = Reader()


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Restrictions on the chunks that may be returned; all of them hold. Empty: "everything the caller may read".

    The document's metadata contain ``metadata``, and for each key of ``metadata_any`` one of its values: as the value
    itself, or in a list. Each of ``dates`` holds. A narrowed document passes when each of the ``readers`` may see it:
    whoever names none finds no narrowed document, and only an empty tuple lets all of them through.
    """

    collections: tuple[int, ...] = ()
    documents: tuple[int, ...] = ()
    languages: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    metadata_any: Mapping[str, Sequence[object]] = field(default_factory=dict)
    dates: tuple[DateRange, ...] = ()
    readers: tuple[Reader, ...] = (ANYBODY,)

    def __bool__(self) -> bool:
        """Whether passages of the collections may be left out."""
        return bool(
            self.documents or self.languages or self.metadata or self.metadata_any or self.dates or self.readers
        )


@dataclass(frozen=True, slots=True)
class MetadataBoost:
    """A favour for documents whose metadata hold ``value`` under ``key``.

    ``weight`` is in standard deviations of the fused scores, so that it means the same with every method; negative to
    push documents down.
    """

    key: str
    value: str | int | float | bool
    weight: float

    def __post_init__(self) -> None:
        if not self.key or not isinstance(self.weight, (int, float)) or not -10 <= self.weight <= 10:
            raise ValueError("A metadata boost needs a key and a weight between -10 and 10.")
        if not isinstance(self.value, (str, int, float, bool)):
            raise ValueError("The value of a metadata boost is a text, a number, true or false.")


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk as one retriever returned it. ``rank`` starts at 1; ``score`` is its own, higher is better."""

    chunk_id: int
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """One retriever's answer, best first. Ties are broken by chunk id, so the same corpus gives the same order.

    ``expansions`` maps each word that the documents lack, as it was typed, to the lexemes that stood in for it.
    ``unknown_words`` are those that nothing stood in for, or only what is hardly alike.
    """

    retriever: Retriever
    chunks: tuple[RankedChunk, ...]
    expansions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrieverScore:
    """What one retriever said of one candidate, and what that was worth.

    ``rank`` is None when the retriever's list, cut at the plan's depth, did not hold the chunk; ``score`` can still be
    known (both scores of every candidate are looked up when fusion or the explanation asks for them).
    ``weight`` is the one that was used. ``contribution`` is this
    retriever's part of the fused score; contributions and bonus sum to it.
    """

    rank: int | None = None
    score: float | None = None
    normalized: float | None = None
    weight: float = 0.0
    contribution: float = 0.0


# Of a retriever that was not asked, or that did not answer.
SILENT = RetrieverScore()


@dataclass(frozen=True, slots=True)
class BoostScore:
    """What one metadata boost added to a candidate, and the boost's name for people (``department=surgery``)."""

    name: str
    contribution: float


GIVEN_QUESTION = "question=given"
"""The name of what a passage gains to which a curator gave the question."""


@dataclass(frozen=True, slots=True)
class RerankScore:
    """What the reranker said of one candidate.

    ``rank_before`` is its place in the fused list, from 1; ``score`` the reranker's own, None when it knew none.
    ``contribution`` is its part of the final score; the other parts count only when ``alone`` is false.
    """

    rank_before: int
    score: float | None
    normalized: float | None
    weight: float
    contribution: float
    alone: bool = False


@dataclass(frozen=True, slots=True)
class SearchScore:
    """What one of a question's searches said of one candidate. ``rank`` and ``score`` are those of its fused list, the
    rank None where neither retriever listed the chunk for ``query``; ``weight`` is the search's share in the sum."""

    query: str
    rank: int | None
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """What the index holds of a chunk: its unit vector, shape (dimension,) or (0,), and its term weights as PostgreSQL
    sends them, if they were read."""

    vector: Vectors
    collection_id: int
    term_weights: bytes | None = None
    configuration: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that a retriever listed, and why it has its rank.

    ``score`` is the sum of the retrievers' contributions, ``bonus``, the boosts and the reranker's contribution; of the
    reranker's alone, where the reranker decides alone. ``retrievers`` has each of them. ``rank`` is None until the
    result is cut, and for a candidate that was ``dropped``, which says why. ``searches`` has one entry a search text
    where there was more than one: contributions then are weighted sums over the searches, and a retriever's rank and
    score those of the search that ranked the chunk best. ``word_share`` is the share of the question's words that it
    holds, rare words counting more, in [0, 1]; None where the lexical retriever did not answer.
    """

    chunk_id: int
    score: float
    retrievers: Mapping[Retriever, RetrieverScore] = field(default_factory=dict, metadata=json_name("legs"))
    bonus: float = 0.0
    boosts: tuple[BoostScore, ...] = ()
    rerank: RerankScore | None = None
    dropped: str = ""
    rank: int | None = None
    matched_terms: tuple[str, ...] = ()
    word_share: float | None = field(default=None, metadata=OMIT_DEFAULT)
    searches: tuple[SearchScore, ...] = field(default=(), metadata=OMIT_DEFAULT)

    @property
    def best_query(self) -> str:
        """The search text under which the chunk ranked best, of several the first; empty where there was only one."""
        ranked = [each for each in self.searches if each.rank is not None]
        return min(ranked, key=lambda each: each.rank or 0).query if ranked else ""
