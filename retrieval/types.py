"""The data types that the stages of a search exchange. Imports no Django.

A chunk is a passage. Ranks start at 1. A score is better when higher; ``None`` means that the chunk was not returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING

from core.dataclass_json import OMIT_DEFAULT, json_name
from retrieval.text.block import Block


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of a document with all data needed to show and cite it.

    ``content`` is the document's ``text[start:end]``. The offsets in ``blocks`` count from the document's start.
    ``page_unit`` is "page" or "slide". ``collection`` is a slug.
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
    media_type: str = ""

    @property
    def section(self) -> str:
        return " › ".join(self.heading_path)

    @property
    def page_name(self) -> str:
        return f"{self.page_unit} {self.page}" if self.page else ""


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """Adjacent passages of one document for a language model.

    ``content`` is the document's ``text[start:end]``, except for white space. ``best`` is the passage with the highest
    rank.
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
        if self.best.start <= offset < self.best.end:
            return self.best
        return next((passage for passage in self.passages if passage.start <= offset < passage.end), self.best)


@dataclass(frozen=True, slots=True)
class AssembledContext:
    blocks: tuple[ContextBlock, ...]
    statistics: Mapping[str, int]


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]


class QueryClass(StrEnum):
    CONCEPTUAL = "conceptual"
    CODE = "code"
    TROUBLESHOOTING = "troubleshooting"
    COMPARISON = "comparison"
    DEFAULT = "default"


class SearchMethod(StrEnum):
    LEXICAL = "lexical"
    VECTOR = "vector"
    RRF = "rrf"
    LINEAR = "linear"
    ZSCORE = "zscore"
    WEIGHTED = "weighted"
    ADAPTIVE = "adaptive"


class Retriever(StrEnum):
    LEXICAL = "lexical"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class RetrieverWeights:
    """The weights of both retrievers' scores: not negative, and at least one positive."""

    vector: float
    lexical: float

    def __post_init__(self) -> None:
        if not (self.vector >= 0 and self.lexical >= 0 and self.vector + self.lexical > 0):
            raise ValueError(f"Weights must be non-negative and not both zero, not {self}.")

    def get(self, retriever: Retriever) -> float:
        return self.vector if retriever is Retriever.VECTOR else self.lexical


@dataclass(frozen=True, slots=True)
class QueryClassification:
    query_class: QueryClass
    rule: str


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question with its answer.

    The answer may be empty. It cites ``documents`` (ids) in ``collections`` (slugs).
    """

    question: str
    answer: str = ""
    documents: tuple[int, ...] = ()
    collections: tuple[str, ...] = ()
    dialogue: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Reformulation:
    """The text that is searched instead of the user's question.

    ``reason`` describes the change. ``by`` is "rules" or a language model's name. ``notice`` says why the model failed.
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
    """A filter by date: the days from ``first`` to ``last``, both included. None means no limit.

    ``field`` is `added`, `changed`, or a metadata key with ISO dates. Raises: ValueError.
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
class NumberRange:
    """A filter by number: the numbers from ``least`` to ``most``, both included. None means no limit.

    ``field`` is a metadata key whose values are numbers, which may be stored as texts. Raises: ValueError.
    """

    field: str
    least: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        if self.least is None and self.most is None:
            raise ValueError("A range of numbers needs a lowest number, a highest number, or both.")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise ValueError(f"A range of numbers must not end ({self.most}) before it begins ({self.least}).")


@dataclass(frozen=True, slots=True)
class ReaderRights:
    """The rights of a user to read documents.

    The user may read unrestricted documents, documents that are restricted to one of ``groups``, and all documents in
    ``collections``.
    """

    groups: tuple[str, ...] = ()
    collections: tuple[int, ...] = ()


ANYBODY = ReaderRights()


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Restrictions on the passages of a search. A passage must meet all of them; empty ones are ignored.

    - ``formats``: media types.
    - ``metadata``: keys and values that the document's metadata must contain.
    - ``metadata_any``: values by key. For each key, the document must have one of these values.
    - ``readers``: users, each of whom must be allowed to read the document. If empty, all documents pass.
    """

    collections: tuple[int, ...] = ()
    documents: tuple[int, ...] = ()
    languages: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    metadata_any: Mapping[str, Sequence[object]] = field(default_factory=dict)
    dates: tuple[DateRange, ...] = ()
    numbers: tuple[NumberRange, ...] = ()
    readers: tuple[ReaderRights, ...] = (ANYBODY,)

    def __bool__(self) -> bool:
        return bool(
            self.documents
            or self.languages
            or self.formats
            or self.metadata
            or self.metadata_any
            or self.dates
            or self.numbers
            or self.readers
        )


@dataclass(frozen=True, slots=True)
class MetadataBoost:
    """A change of the score of documents with this metadata key and value.

    ``weight`` is in standard deviations of the scores, and may be negative.
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
    chunk_id: int
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The chunks that one retriever found, best first.

    ``expansions`` maps words that no passage contains to similar words that are searched instead. ``unknown_words`` are
    words that no passage contains and that have no similar word.
    """

    retriever: Retriever
    chunks: tuple[RankedChunk, ...]
    expansions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown_words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrieverScore:
    """The rank and score that one retriever gave to a passage.

    ``rank`` is None if the retriever did not return the passage. ``contribution`` is its part of the total score.
    """

    rank: int | None = None
    score: float | None = None
    normalized: float | None = None
    weight: float = 0.0
    contribution: float = 0.0


SILENT = RetrieverScore()


@dataclass(frozen=True, slots=True)
class AppliedBoost:
    """The number that one boost added to a passage's score. Users see its ``name``, such as ``department=surgery``."""

    name: str
    contribution: float


# Boost of a passage for which a curator entered the user's question.
GIVEN_QUESTION = "question=given"
# Questions by chunk id. A search treats them as if a curator had stored them.
TriedQuestions = Mapping[int, Sequence[str]]


@dataclass(frozen=True, slots=True)
class RerankScore:
    """The effect of the reranker on one passage.

    ``rank_before`` is the rank before reranking. ``contribution`` is added to the passage's score; if ``alone`` is
    true, it replaces the score.
    """

    rank_before: int
    score: float | None
    normalized: float | None
    weight: float
    contribution: float
    alone: bool = False


@dataclass(frozen=True, slots=True)
class SearchScore:
    """A passage's rank and score for one of several query texts.

    ``rank`` is None if no retriever returned the passage for this text.
    """

    query: str
    rank: int | None
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A passage in the index: its unit vector (may be empty), and BM25 weights in PostgreSQL's format."""

    vector: Vectors
    collection_id: int
    term_weights: bytes | None = None
    configuration: str = ""
    language: str = ""
    given_questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that a retriever found, and the reasons for its rank.

    - ``score``: the sum of ``bonus`` and all contributions of retrievers and boosts. A reranker may replace it.
    - ``dropped``: the reason why the passage is not shown; its ``rank`` is then None.
    - ``searches``: the passage's rank and score for each query text, if there are several.
    - ``word_share``: the share of the question's words in the passage, 0 to 1; None if keywords were not searched.
    """

    chunk_id: int
    score: float
    retrievers: Mapping[Retriever, RetrieverScore] = field(default_factory=dict, metadata=json_name("legs"))
    bonus: float = 0.0
    boosts: tuple[AppliedBoost, ...] = ()
    rerank: RerankScore | None = None
    dropped: str = ""
    rank: int | None = None
    matched_terms: tuple[str, ...] = ()
    word_share: float | None = field(default=None, metadata=OMIT_DEFAULT)
    searches: tuple[SearchScore, ...] = field(default=(), metadata=OMIT_DEFAULT)

    @property
    def best_query(self) -> str:
        """The searched text for which the passage had its best rank; empty if only one text was searched."""
        ranked = [each for each in self.searches if each.rank is not None]
        return min(ranked, key=lambda each: each.rank or 0).query if ranked else ""
