"""The types from a question to its stored answer. Pure Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from core.dataclass_json import from_json
from retrieval.search.trace import SearchTrace

if TYPE_CHECKING:
    from chat.answering.checking.citations import Marker
    from retrieval.tables.results import ShownTable, TableResult
    from retrieval.types import AssembledContext, ContextBlock, Passage


@dataclass(frozen=True, slots=True)
class ContextSource:
    """A numbered block of the context, cited as ``[marker]``. Markers start at 1."""

    marker: int
    block: ContextBlock


@dataclass(frozen=True, slots=True)
class VerifiedCitation:
    """A checked marker of the answer, with the words of the source that support the sentence.

    The marker is ``text[marker_start:marker_end]`` of the answer; ``quote`` is ``text[start:end]`` of the document.
    ``support`` is in [0, 1]; None if not measured. ``verbatim``: the source contains the sentence word for word.
    ``text[marked_start:marked_end]`` of the answer are these words, if it quotes more; else None.
    """

    marker: int
    passage: Passage
    quote: str
    start: int
    end: int
    marker_start: int
    marker_end: int
    support: float | None = None
    verbatim: bool = False
    marked_start: int | None = None
    marked_end: int | None = None


@dataclass(frozen=True, slots=True)
class BestPlace:
    """The place ``text[start:end]`` of the document in the source with this marker."""

    marker: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A checked sentence, ``text[start:end]`` of the answer without closing markers.

    ``markers`` are the sources it cites. ``support`` is in [0, 1]; ``support`` and ``supported`` are None if it could
    not be measured. ``reasons`` for doubt are `number`, `name`, `negation`, `words` or `uncited`. ``best`` is the place
    that supports it best; ``verbatim``: that place contains it word for word.
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
    """The citations and checked sentences of an answer."""

    citations: tuple[VerifiedCitation, ...]
    statements: tuple[CheckedStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens and cost of a model for one answer.

    ``cost`` is in the currency of the prices; None without prices. ``estimated``: the server did not count, so the
    tokens were estimated from the text's length.
    """

    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The tables' result for a model's query.

    ``text`` has the markers of ``sources``, which contain its rows. ``document_id`` is the table's document.
    """

    text: str
    sources: tuple[ContextSource, ...]
    document_id: int


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A call of a function by a model: its ``arguments`` as written, and the result ``told`` to the model.

    ``document_id`` is the table's document; None if no table was computed.
    """

    arguments: str
    told: str
    document_id: int | None = None


@dataclass(slots=True)
class AnswerDraft:
    """An answer that is being written: the search result for its ``question``, and the text so far.

    The ``question`` is complete without the conversation. ``results`` are the search's hits, best first, each with the
    text around it. The text cites ``sources`` by marker: the results, or, for a language model, the context's blocks.

    ``confidence`` is the estimated probability that the sources answer the question, in [0, 1], or None; ``evidence``
    contains its numbers. ``profile_version`` is the stored search profile's version, None for the built-in profile.
    ``computed`` is the answer computed from a table; its rows are the first sources. ``table`` is only shown as a
    result.

    ``generator`` names the writer, and ``notices`` are for the reader. ``usage`` is None before a model is called.
    ``cut_off``: the model had to stop early. ``filtered``: its server's filter stopped it. ``looped``: it repeated
    itself and was stopped. ``has_machinery``: thoughts or calls in its text were removed. ``withheld`` is the reason
    why its text must not be shown. ``left_out`` are the markers of sources that did not fit into the prompt, ``calls``
    the model's calls. ``instructions`` come from the curators, with their version. ``dialogue`` are the chat messages
    with the model's reply; empty if it called functions or did not finish.
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
    """The next piece of the answer. A marker is never split over two pieces.

    ``markers`` are the markers in a model's text. None: the site wrote the text, and every ``[n]`` is a marker.
    """

    text: str
    markers: tuple[Marker, ...] | None = None


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """All earlier tokens are invalid: the model's server showed later that they were a thought."""


class AnswerState(StrEnum):
    """The site's verdict: the documents answer, some passages come close, or no passage does."""

    ANSWER = "answer"
    CLOSEST = "closest"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another result of the search, shown below or instead of the answer.

    ``text`` is the shown part of the passage, as Markdown. ``quote`` is ``text[start:end]`` of the document's text, the
    place closest to the question. ``score`` comes from the search; higher is better.
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
    """The approver's name and the date of an approved answer."""

    approved_id: int
    by: str
    on: date


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole answer.

    ``alternatives`` are other passages, best first; without an answer, the closest ones. ``choices`` are suggestions
    for a misspelt question.
    """

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
    """There is no answer. ``message`` is for the asker, with a next step."""

    message: str


# The draft comes when its sources are known, before the first token, and again when a model has queried tables, before
# the first token that may cite new sources.
AnswerEvent = AnswerDraft | AnswerToken | Withdrawn | Completed | Failed


@dataclass(frozen=True, slots=True)
class PromptTrace:
    """The prompt's use of the sources, by their markers.

    ``calls`` are the model's calls, ``instructions`` the version of the curators' instructions in the prompt.
    """

    sources_left_out: tuple[int, ...] = ()
    sources_with_instructions: tuple[int, ...] = ()
    calls: tuple[TracedCall, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class AnswerTrace(SearchTrace):
    """The stored explanation of a search and its answer, for the debug panel.

    ``assembly`` are the statistics of :func:`retrieval.search.assembly.assemble`. ``uncalibrated`` names the embedder
    if it has no calibration, so that only words were compared. ``evidence`` are the numbers behind the confidence.
    ``cut_off``: the model had to stop early. A trace contains no text of passages, so deleted documents leave no text
    in it.
    """

    assembly: Mapping[str, int] = field(default_factory=dict)
    prompt: PromptTrace = PromptTrace()
    uncalibrated: str = ""
    evidence: Mapping[str, float] = field(default_factory=dict)
    cut_off: bool = False


def read_trace(stored: Mapping[str, Any]) -> AnswerTrace | None:
    """Return the trace that is stored with an answer; None without a search."""
    return from_json(AnswerTrace, stored) if stored else None
