"""Types of the JSON of answers and events, as the API sends it and database rows store it.

Fields are ``NotRequired`` because rows of earlier releases lack them, unless the class gives another reason.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class _NamedDocumentPayload(TypedDict):
    """A document. ``url`` is its address on the web, ``collection`` a slug."""

    title: str
    url: str
    collection: NotRequired[str]
    media_type: NotRequired[str]


class DocumentPayload(_NamedDocumentPayload):
    id: int


class CitedDocumentPayload(_NamedDocumentPayload):
    id: int | None


class _PagePayload(TypedDict):
    """A place on a page of a document. ``page_unit`` says whether ``page`` counts pages or slides."""

    collection: NotRequired[str]
    section: str
    page: int | None
    page_unit: NotRequired[str]


class DocumentPlacePayload(_PagePayload):
    chunk_id: int
    document: DocumentPayload


class SourcePayload(DocumentPlacePayload):
    """A source of the answer, cited as ``[marker]``.

    ``content`` is ``text[start:end]`` of the document; ``snippet`` is the part of it that best matches the question. If
    ``instructions`` is true, the content has sentences that try to instruct a model.
    """

    marker: int
    content: str
    start: int
    end: int
    score: float
    snippet: NotRequired[str]
    instructions: NotRequired[bool]


class AlternativePassagePayload(DocumentPlacePayload):
    """A passage that is shown next to the answer or instead of it. ``url`` is its address on this site."""

    url: NotRequired[str]
    text: NotRequired[str]
    quote: str
    start: int
    end: int
    score: float


class CitationPayload(_PagePayload):
    chunk_id: int | None
    document: CitedDocumentPayload
    marker: int
    marker_start: int
    marker_end: int
    quote: str
    start: int
    end: int
    support: float | None
    verbatim: bool
    marked_start: int | None
    marked_end: int | None


class QuestionChoicePayload(TypedDict):
    label: str
    question: str


class BestRangePayload(TypedDict):
    marker: int
    start: int
    end: int


class StatementPayload(TypedDict):
    start: int
    end: int
    markers: list[int]
    support: float | None
    supported: bool | None
    reasons: list[str]
    best: BestRangePayload | None
    verbatim: bool


class UsagePayload(TypedDict, total=False):
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    estimated: bool


class TablePayload(TypedDict):
    document: DocumentPayload
    caption: str
    columns: list[str]
    rows: list[list[str]]
    row_count: int
    matched: int
    shown: int
    sorted_by: str
    url: str
    conditions: list[str]
    summary: str


class ComputedDocumentPayload(TypedDict):
    id: int
    title: str


class ComputedTablePayload(TypedDict):
    document: ComputedDocumentPayload
    caption: str
    rows: int


class ComputedRowsPayload(TypedDict):
    """Rows of a table that meet the question's conditions. ``numbers`` are row numbers from 1."""

    count: int
    numbers: list[int]


class ComputedPayload(TypedDict):
    operation: str
    values: list[str]
    conditions: list[str]
    table: ComputedTablePayload
    rows: ComputedRowsPayload


class ApprovalPayload(TypedDict):
    by: str
    on: str


class ShownRowsPayload(TypedDict, total=False):
    """The rows that an answer shows. These fields are missing if it shows none."""

    computed: ComputedPayload
    table: TablePayload


class AnswerPayload(ShownRowsPayload):
    """The fields of an answer. An OpenAI completion gets them in addition to the fields that OpenAI defines.

    So no field may have the name of one of OpenAI's fields.
    """

    answer: str
    answer_id: str
    conversation: str
    state: str
    refused: bool
    alternatives: list[AlternativePassagePayload]
    citations: list[CitationPayload]
    search_method: str
    degraded: list[str]
    generator: str
    notice: str
    cut_off: bool
    statements: list[StatementPayload]
    confidence: float | None
    completed_question: str
    joined_question: str
    filters: dict[str, object]
    approved: ApprovalPayload | None
    repeats: bool
    repeated_from: str | None


class CompletedEventPayload(AnswerPayload):
    """The event `completed`: a finished answer. The API also uses it as a whole reply."""

    choices: list[QuestionChoicePayload]
    usage: UsagePayload


class ReformulationPayload(TypedDict):
    """A query that was searched instead of the question, why, and which rules or model wrote it."""

    query: str
    reason: str
    by: str


class TraceFieldsPayload(TypedDict):
    """The fields of the event `searched` that come from the trace, the record of the search."""

    query_class: str
    reformulation: ReformulationPayload | None


class SearchedEventPayload(TraceFieldsPayload):
    sources: list[SourcePayload]
    search_method: str
    degraded: list[str]
    completed_question: str
    joined_question: str
    confidence: float | None


class MarkerPayload(TypedDict):
    marker: int
    start: int
    end: int


class TokenPayload(TypedDict):
    """The event `token`, a piece of the answer. If ``markers`` is missing, every ``[n]`` is a marker."""

    text: str
    markers: NotRequired[list[MarkerPayload]]


class QueuedEventPayload(TypedDict):
    """The event `queued`: how many answers are in the queue before this one. At 0, this one is written next."""

    place: int


class FailedEventPayload(TypedDict):
    """The event `failed`. Only some failures have a ``code``.

    If ``withheld`` is true, the reader lost the right to read the answer.
    """

    message: str
    code: NotRequired[str]
    withheld: NotRequired[bool]


class EmptyPayload(TypedDict):
    """The events `reset`, `ping` and `lost`, which have no fields."""


EventPayload = (
    SearchedEventPayload | TokenPayload | QueuedEventPayload | CompletedEventPayload | FailedEventPayload | EmptyPayload
)
