"""Types of all that an answer consists of, from the question to the event. Pure Python."""

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
    """A source of an answer, cited as ``[marker]``; markers start at 1."""

    marker: int
    block: ContextBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedWords:
    """A marker, and the source's words for its sentence.

    The marker is at ``text[marker_start:marker_end]`` of the answer; ``quote`` is ``text[start:end]`` of the document.
    ``support`` is in [0, 1]; None if not measured. ``verbatim``: the source contains the sentence itself.
    ``marked_start`` and ``marked_end`` are the span of a longer quotation that is closest to the question.
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
    """The words ``text[start:end]`` of the source's document that support a sentence best."""

    marker: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A checked sentence at ``text[start:end]`` of the answer, without the markers at its end.

    ``support`` is in [0, 1]; it and ``supported`` are None if not measured. ``reasons`` to doubt: `number`, `name`,
    `negation`, `words`, `uncited`. ``verbatim``: ``best`` contains the sentence itself.
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
    citations: tuple[VerifiedCitation, ...]
    statements: tuple[CheckedStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a model for one answer, and their cost (None if the model has no price).

    ``estimated``: the server sent no numbers, so they are computed from the text's length.
    """

    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The result of a model's question to the tables. ``text`` cites ``sources``."""

    text: str
    sources: tuple[ContextSource, ...]
    document_id: int


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A model's call and its result.

    ``arguments`` are as the model wrote them; ``document_id`` is None after a failure.
    """

    arguments: str
    told: str
    document_id: int | None = None


@dataclass(slots=True)
class AnswerDraft:
    """The state of an answer while it is written: the result of the search, and what is known of the text.

    ``question`` is clear without the conversation. ``results`` are the hits with the text around them, best first. The
    text cites ``sources``: a quotation cites the results, a model the blocks of the context; rows of a ``computed``
    answer come first. ``table`` is shown below the answer. ``confidence`` is the probability that ``evidence`` gives.

    ``usage`` is None before a model is called. ``cut_off``: the text ends early. ``filtered``: the server's content
    filter stopped it. ``looped``: the model repeated itself. ``has_machinery``: thoughts or calls were removed.
    ``withheld``: the reason why the text must not be shown. ``left_out``: markers of the sources that did not fit into
    the prompt. ``dialogue``: the messages to and from the model, unless it called functions.
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
    """The next piece of the answer. It never ends within a marker.

    None for ``markers``: the site wrote the text, and every ``[n]`` is a marker.
    """

    text: str
    markers: tuple[Marker, ...] | None = None


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The text of all earlier tokens was a model's thought, and must be removed."""


class AnswerState(StrEnum):
    ANSWER = "answer"
    CLOSEST = "closest"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A passage to show beside an answer or instead of it. A higher ``score`` is better.

    ``text`` is Markdown to show. ``quote``, at ``text[start:end]`` of the document, is closest to the question.
    """

    passage: Passage
    text: str
    quote: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Choice:
    label: str
    question: str


@dataclass(frozen=True, slots=True)
class Approval:
    approved_id: int
    by: str
    on: date


@dataclass(frozen=True, slots=True)
class Completed:
    """The finished answer. If it is a refusal, ``alternatives`` are the closest passages."""

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
    """The answer failed. The user reads ``message``, which names a next step."""

    message: str


# The draft comes before the first token. It comes again when queries of tables added sources, before tokens cite them.
AnswerEvent = AnswerDraft | AnswerToken | Withdrawn | Completed | Failed


@dataclass(frozen=True, slots=True)
class PromptTrace:
    """The left-out sources and the sources with instructions (by marker), the calls, and the curators' instructions."""

    sources_left_out: tuple[int, ...] = ()
    sources_with_instructions: tuple[int, ...] = ()
    calls: tuple[TracedCall, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class AnswerTrace(SearchTrace):
    """The explanation of a search and its answer, as it is stored. It has no text of passages.

    ``uncalibrated`` names the embedder if its closeness was never calibrated. ``blocks`` maps the chunk id of a
    passage, as text, to the number of its context block, from 1.
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
