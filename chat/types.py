"""Types from a question to its answer. Pure Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from core.dataclass_json import from_json
from retrieval.search.trace import IndexState, SearchTrace

if TYPE_CHECKING:
    from chat.answering.checking.citations import Marker
    from retrieval.tables.results import ShownTable, TableResult
    from retrieval.types import AssembledContext, ContextBlock, Passage


@dataclass(frozen=True, slots=True)
class ContextSource:
    """A block cited as ``[marker]``, from 1."""

    marker: int
    block: ContextBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedWords:
    """A marker, and the source's words for its sentence.

    The marker is ``text[marker_start:marker_end]`` of the answer, and ``quote`` is ``text[start:end]`` of the document.
    ``support`` is in [0, 1]; None if not measured. ``verbatim``: the source contains the sentence itself.
    ``marked_start`` and ``marked_end`` delimit the words within a longer quotation.
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
    """A checked citation of a passage that was found."""

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
    """A saved citation, as it is streamed, shown and sent.

    ``collection`` is a name, ``page_unit`` what ``page`` counts.
    """

    chunk_id: int | None
    collection: str
    document: CitedDocument
    section: str
    page: int | None
    page_unit: str


@dataclass(frozen=True, slots=True)
class BestPlace:
    """``text[start:end]`` of the source's document."""

    marker: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A checked sentence, ``text[start:end]`` of the answer without closing markers.

    ``support`` is in [0, 1]; it and ``supported`` are None if not measured. ``reasons``: `number`, `name`, `negation`,
    `words`, `uncited`. ``verbatim``: ``best`` contains the sentence itself.
    """

    start: int
    end: int
    markers: tuple[int, ...]
    support: float | None = None
    supported: bool | None = None
    reasons: tuple[str, ...] = ()
    best: BestPlace | None = None
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class Verified:
    """Citations and checked sentences."""

    citations: tuple[VerifiedCitation, ...]
    statements: tuple[CheckedStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """A model's tokens and cost (None without prices) for one answer.

    ``estimated``: from the text's length.
    """

    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The tables' result for a model; ``text`` cites ``sources``."""

    text: str
    sources: tuple[ContextSource, ...]
    document_id: int


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A model's call with its original ``arguments``, and the result; ``document_id`` is None after a failure."""

    arguments: str
    told: str
    document_id: int | None = None


@dataclass(slots=True)
class AnswerDraft:
    """An answer that is being written: the search result, and the text so far.

    ``question`` is complete without the conversation. ``results`` are hits with the text around them, best first. The
    text cites ``sources``: the results, or for a model the context's blocks; rows of a ``computed`` answer come first.
    ``table`` is only shown. ``confidence`` is a probability, computed from ``evidence``.

    ``usage`` is None before a model is called. ``cut_off``: the model had to stop early, ``filtered`` by its server,
    ``looped`` after repeating itself. ``has_machinery``: thoughts or calls were removed. ``withheld`` is the reason why
    the text must not be shown. ``left_out`` are markers of sources that did not fit into the prompt. ``dialogue`` are
    the model's messages, if it finished without calls.
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
    usage: Usage | None = None
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
    """The next piece of the answer, which never splits a marker.

    None for ``markers``: the site wrote the text, and every ``[n]`` is a marker.
    """

    text: str
    markers: tuple[Marker, ...] | None = None


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """All earlier tokens were a thought."""


class AnswerState(StrEnum):
    ANSWER = "answer"
    CLOSEST = "closest"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another result of the search; higher ``score`` is better.

    ``text`` is the shown Markdown; ``quote``, ``text[start:end]`` of the document, is closest to the question.
    """

    passage: Passage
    text: str
    quote: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A suggested question, and its label."""

    label: str
    question: str


@dataclass(frozen=True, slots=True)
class Approval:
    """The approver and date of an approved answer."""

    approved_id: int
    by: str
    on: date


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole answer; without one, ``alternatives`` are the closest passages."""

    text: str
    citations: tuple[VerifiedCitation, ...]
    generator: str
    state: AnswerState = AnswerState.ANSWER
    notice: str = ""
    statements: tuple[CheckedStatement, ...] = ()
    usage: Usage | None = None
    alternatives: tuple[Alternative, ...] = ()
    choices: tuple[Choice, ...] = ()
    approval: Approval | None = None

    @property
    def refused(self) -> bool:
        return self.state is not AnswerState.ANSWER


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer; ``message`` is for the asker, with a next step."""

    message: str


# The draft comes before the first token, and again after queries of tables, before tokens that cite them.
AnswerEvent = AnswerDraft | AnswerToken | Withdrawn | Completed | Failed


@dataclass(frozen=True, slots=True)
class PromptTrace:
    """The prompt's sources by marker, calls, and version of instructions."""

    sources_left_out: tuple[int, ...] = ()
    sources_with_instructions: tuple[int, ...] = ()
    calls: tuple[TracedCall, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class AnswerTrace(SearchTrace):
    """The stored explanation of a search and its answer.

    ``uncalibrated`` names an embedder without calibration. ``blocks`` are the context's blocks, from 1, by the id of
    each passage in them as text. No text of passages is stored, so deleted documents leave none.
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
