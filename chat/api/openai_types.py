from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from chat.payload_types import AnswerPayload, CitationPayload, QuestionChoicePayload, SourcePayload


class ErrorFields(TypedDict):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(TypedDict):
    error: ErrorFields


class ModelBody(TypedDict):
    """A model in the list of models. Its ``name`` is an addition to OpenAI's protocol."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    name: str


class ModelListBody(TypedDict):
    object: Literal["list"]
    data: list[ModelBody]


class EmbeddingBody(TypedDict):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(TypedDict):
    prompt_tokens: int
    total_tokens: int


class EmbeddingListBody(TypedDict):
    object: Literal["list"]
    data: list[EmbeddingBody]
    model: str
    usage: EmbeddingUsage


class UrlCitation(TypedDict):
    start_index: int
    end_index: int
    title: str
    url: str


class Annotation(TypedDict):
    type: Literal["url_citation"]
    url_citation: UrlCitation


class CitationFields(TypedDict):
    """The citations in a message or delta. ``citations`` is an addition to OpenAI's protocol."""

    annotations: list[Annotation]
    citations: list[CitationPayload]


class MessageBody(CitationFields):
    role: Literal["assistant"]
    content: str
    refusal: str | None


class DeltaBody(TypedDict, total=False):
    role: Literal["assistant"]
    content: str
    annotations: list[Annotation]
    citations: list[CitationPayload]


class CompletionUsage(TypedDict):
    """The number of tokens. ``cost`` and ``estimated`` are additions to OpenAI's protocol."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost: NotRequired[float | None]
    estimated: NotRequired[bool]


class _Choice(TypedDict):
    index: int
    finish_reason: Literal["stop", "length"] | None
    logprobs: None


class CompletionChoice(_Choice):
    message: MessageBody


class ChunkChoice(_Choice):
    delta: DeltaBody


class CompletionEnvelope(TypedDict):
    id: str
    object: str
    created: int
    model: str


class AskResponseFields(AnswerPayload):
    """The fields that the site's endpoint `ask` returns, under names that OpenAI's protocol does not use."""

    question_choices: list[QuestionChoicePayload]
    passages: list[SourcePayload]
    ignored: list[str]


class CompletionBody(CompletionEnvelope, AskResponseFields):
    choices: list[CompletionChoice]
    usage: CompletionUsage


class ChunkBody(CompletionEnvelope):
    choices: list[ChunkChoice]
