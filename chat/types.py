"""Types for answering a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from core.dataclass_json import from_json
from retrieval.search.trace import IndexState, SearchTrace

if TYPE_CHECKING:
    from chat.answering.checking.citations import CitationMarker
    from retrieval.tables.results import ShownTable, TableResult
    from retrieval.types import AssembledContext, ContextBlock, Passage


@dataclass(frozen=True, slots=True)
class ContextSource:
    """A source of an answer, cited as ``[marker]``; markers start at 1."""

    marker: int
    block: ContextBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedWords:
    """A marker of an answer, and the words of the source that the marker cites.

    - ``marker_start`` and ``marker_end``: the offsets of the marker in the answer's text.
    - ``quote``: the document's ``text[start:end]``.
    - ``support``: a number from 0 to 1, or None if not measured.
    - ``verbatim``: the source contains the sentence before the marker word for word.
    - ``marked_start`` and ``marked_end``: the part of a longer quotation that is closest to the question.
    """

    marker: int
    marker_start: int
    marker_end: int
    quote: str
    start: int
    end: int
    support: float | None = None
    verbatim: bool = False
    marked_start: int | None = None
    marked_end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCitation(CitedWords):
    passage: Passage


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A cited document; ``id`` is None after its deletion, and ``collection`` a slug."""

    id: int | None
    title: str
    url: str
    collection: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCitation(CitedWords):
    """A citation as it is saved, streamed, shown on pages and returned by the API.

    ``collection`` is a name. ``page_unit`` says whether ``page`` counts pages or slides.
    """

    chunk_id: int | None
    collection: str
    document: CitedDocument
    section: str
    page: int | None
    page_unit: str


@dataclass(frozen=True, slots=True)
class SupportingRange:
    """The words of a source that support a sentence best, at ``text[start:end]`` of the document."""

    marker: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A checked sentence at ``text[start:end]`` of the answer, without the markers at its end.

    - ``support``: from 0 to 1; None if not measured.
    - ``reasons``: the causes of doubt: `number`, `name`, `negation`, `words`, `uncited`.
    - ``best``: the part of a source whose words support the sentence best.
    - ``verbatim``: whether the words at ``best`` contain the sentence itself.
    """

    start: int
    end: int
    markers: tuple[int, ...]
    support: float | None = None
    supported: bool | None = None
    reasons: tuple[str, ...] = ()
    best: SupportingRange | None = None
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class VerificationResult:
    citations: tuple[VerifiedCitation, ...]
    statements: tuple[CheckedStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of a model for one answer, and their cost (None if the model has no price).

    If ``estimated`` is true, the server sent no numbers.
    """

    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class TableReply:
    """The reply to a language model's query of a table. Its ``text`` cites ``sources``."""

    text: str
    sources: tuple[ContextSource, ...]
    document_id: int


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A function call by a model, and its result.

    ``arguments`` are as the model wrote them; ``document_id`` is None after a failure.
    """

    arguments: str
    told: str
    document_id: int | None = None


@dataclass(slots=True)
class AnswerDraft:
    """The state of an answer while it is written: the result of the search, and facts about the text so far.

    - ``question`` can be understood without the conversation.
    - ``results`` are the search results with the text around them, best first.
    - ``sources`` are the texts that the answer can cite; table rows of a ``computed`` value come first.
    - ``table`` is shown below the answer. ``confidence`` is the probability that the sources answer the question.
    - ``usage`` is None before a model is called.
    - ``cut_off``: the text ends too early. ``filtered``: the server's content filter stopped it. ``looped``: the model
      repeated itself. ``has_machinery``: reasoning or function calls were removed.
    - ``withheld`` is the reason why the text must not be shown.
    - ``left_out`` are the markers of the sources that did not fit into the prompt.
    - ``dialogue`` are the messages to and from the model; empty if the model called functions.
    """

    question: str
    sources: tuple[ContextSource, ...]
    context: AssembledContext
    trace: SearchTrace
    results: tuple[ContextSource, ...] = ()
    profile_version: int | None = None
    computed: TableResult | None = None
    table: ShownTable | None = None
    confidence: float | None = None
    evidence: Mapping[str, float] = field(default_factory=dict)
    index: IndexState | None = None

    generator: str = ""
    notices: list[str] = field(default_factory=list)
    usage: TokenUsage | None = None
    prompt_version: int | None = None
    cut_off: bool = False
    filtered: bool = False
    withheld: str = ""
    left_out: tuple[int, ...] = ()
    looped: bool = False
    has_machinery: bool = False
    calls: list[TracedCall] = field(default_factory=list)
    instructions: str = ""
    instructions_version: str = ""
    dialogue: tuple[Mapping[str, str], ...] = ()
    written: str = ""


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """The next piece of the answer. It never ends within a marker (``[1]``).

    If ``markers`` is None, every ``[n]`` in it is a marker.
    """

    text: str
    markers: tuple[CitationMarker, ...] | None = None


@dataclass(frozen=True, slots=True)
class TokensWithdrawnEvent:
    """An event: all earlier tokens were a model's thought, so a reader must remove their text."""


class AnswerState(StrEnum):
    ANSWER = "answer"
    CLOSEST = "closest"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class AlternativePassage:
    """A passage to show with an answer or instead of it. A higher ``score`` is better.

    ``text`` is Markdown. ``quote`` is the sentence or row that best matches the question. ``start`` and ``end``
    are its offsets in the document.
    """

    passage: Passage
    text: str
    quote: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class QuestionChoice:
    label: str
    question: str


@dataclass(frozen=True, slots=True)
class Approval:
    approved_id: int
    by: str
    on: date


@dataclass(frozen=True, slots=True)
class CompletedEvent:
    """An event: the answer is finished.

    If it is a refusal, ``alternatives`` are the passages closest to the question.
    """

    text: str
    citations: tuple[VerifiedCitation, ...]
    generator: str
    state: AnswerState = AnswerState.ANSWER
    notice: str = ""
    statements: tuple[CheckedStatement, ...] = ()
    usage: TokenUsage | None = None
    alternatives: tuple[AlternativePassage, ...] = ()
    choices: tuple[QuestionChoice, ...] = ()
    approval: Approval | None = None

    @property
    def refused(self) -> bool:
        return self.state is not AnswerState.ANSWER


@dataclass(frozen=True, slots=True)
class FailedEvent:
    """An event: the answer failed. The user reads ``message``, which names a next step."""

    message: str


# The draft comes before the first token, and again before tokens cite new sources.
AnswerEvent = AnswerDraft | AnswerToken | TokensWithdrawnEvent | CompletedEvent | FailedEvent


@dataclass(frozen=True, slots=True)
class PromptTrace:
    """The parts of a prompt that the debug panel explains."""

    sources_left_out: tuple[int, ...] = ()
    sources_with_instructions: tuple[int, ...] = ()
    calls: tuple[TracedCall, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class AnswerTrace(SearchTrace):
    """The explanation of a search and its answer, as it is stored, without text of passages.

    ``uncalibrated`` is an embedder whose cosines could not be converted to closeness. ``blocks`` maps a passage's id,
    as text, to the number (from 1) of the text into which it was merged.
    """

    assembly: Mapping[str, int] = field(default_factory=dict)
    prompt: PromptTrace = PromptTrace()
    uncalibrated: str = ""
    evidence: Mapping[str, float] = field(default_factory=dict)
    cut_off: bool = False
    index: IndexState | None = None
    blocks: Mapping[str, int] = field(default_factory=dict)


def read_trace(stored: Mapping[str, Any]) -> AnswerTrace | None:
    return from_json(AnswerTrace, stored) if stored else None
