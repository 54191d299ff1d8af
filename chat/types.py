"""The types that lead from a question to its saved answer. Pure Python."""

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
    """A numbered block of the context: what ``[marker]`` in an answer refers to. Markers start at 1."""

    marker: int
    block: ContextBlock


@dataclass(frozen=True, slots=True)
class VerifiedCitation:
    """A checked marker of the answer, with the words of the source that support the sentence.

    The marker is ``text[marker_start:marker_end]`` of the answer; ``quote`` is ``text[start:end]`` of the document.
    ``support`` lies in [0, 1]; None if it was not measured. ``verbatim`` is true if the source contains the sentence
    word for word, so that nothing had to be measured. ``text[marked_start:marked_end]`` of the answer are these words,
    if it quotes more than them; else None.
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
    """The document's ``text[start:end]`` in the source with this marker."""

    marker: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A sentence of the answer, checked against the sources: ``text[start:end]`` of the answer, without closing
    markers.

    ``markers`` are the sources it cites. ``support`` lies in [0, 1]; None, with ``supported``, if it could not be
    measured. ``reasons`` are the reasons for doubt: `number`, `name`, `negation`, `words` or `uncited`. ``best`` is the
    place that supports it best; ``verbatim`` is true if that place contains it word for word.
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
    """The result of checking an answer against its sources: the places that its markers cite, and its checked
    sentences.
    """

    citations: tuple[VerifiedCitation, ...]
    statements: tuple[CheckedStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens and cost of a model for one answer. ``cost`` is in the currency of the prices; None without prices.

    ``estimated`` is true if the server counted nothing and the tokens were estimated from the text's length.
    """

    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The tables' result for a model's own query: ``text`` with the markers of ``sources``, which contain its rows.
    ``document_id`` is the table's.
    """

    text: str
    sources: tuple[ContextSource, ...]
    document_id: int


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A function that a model called, with its ``arguments`` as the model wrote them, and the result it was ``told``.
    ``document_id`` is that of the table; None if nothing was computed.
    """

    arguments: str
    told: str
    document_id: int | None = None


@dataclass(slots=True)
class AnswerDraft:
    """An answer that is being written: the search result for its ``question``, and the text so far.

    The ``question`` is complete without the conversation. ``results`` are the hits of the search, best first; each is
    a source of its own, with the text around it. The text cites ``sources`` by marker: the results, or, for a language
    model, the context's blocks.

    ``confidence`` is the estimated probability that the sources answer the question, in [0, 1], or None if it was not
    estimated; ``evidence`` contains the numbers behind it. ``profile_version`` is the version of the stored search
    profile, None for the built-in one. ``computed`` is the answer computed from a table; its rows are the first
    sources. ``table`` is shown as a result and states no answer.

    ``generator`` names who writes, and ``notices`` are for the reader. ``usage`` is None while no model was asked.
    ``cut_off`` is true if the model had to stop early, ``filtered`` if its server's filter stopped it, ``looped`` if it
    repeated itself and was stopped, ``has_machinery`` if parts of its text were not an answer and were left out.
    ``withheld`` is the reason why its text must not be shown. ``left_out`` are the markers of sources that did not fit
    into the prompt, ``calls`` the functions that the model called. ``instructions`` are the curators' to the model, and
    ``instructions_version`` names them. ``dialogue`` are the chat messages sent to the model, and its reply; empty if
    it called functions or did not finish.
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

    ``markers`` are those in this text, which a model wrote. None: the site wrote it, and every ``[n]`` is one.
    """

    text: str
    markers: tuple[Marker, ...] | None = None


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """All tokens before it were no answer: the model's server showed later that they were a thought."""


class AnswerState(StrEnum):
    """The site's verdict: the documents answer, some passages come close, or no passage does."""

    ANSWER = "answer"
    CLOSEST = "closest"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A further result of the search, shown below the answer or in its place.

    ``text`` is the part of the passage that is shown, as Markdown. ``quote`` is ``text[start:end]`` of the document's
    text, the place closest to the question. ``score`` comes from the search; higher is better.
    """

    passage: Passage
    text: str
    quote: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A question that can be asked instead, and its label."""

    label: str
    question: str


@dataclass(frozen=True, slots=True)
class Approval:
    """Who approved an answer, by name, and since when. ``approved_id`` is the approved answer's."""

    approved_id: int
    by: str
    on: date


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole answer.

    ``alternatives`` are further passages, best first; without an answer, the closest ones. ``approval`` says who
    approved the answer, or is None. ``choices`` are offered if the question is misspelt.
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
        """Return whether the documents do not answer."""
        return self.state is not AnswerState.ANSWER


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer. ``message`` is for the person who asked, with a next step."""

    message: str


# The draft comes when its sources are known, before the first token; and again when a model has asked the tables,
# before the first token that may name further sources.
AnswerEvent = AnswerDraft | AnswerToken | Withdrawn | Completed | Failed

# What is kept of the search behind an answer: written with the answer, read by the debug panel.


@dataclass(frozen=True, slots=True)
class PromptTrace:
    """How the prompt used the sources, which are named by their markers. ``calls`` are the functions that the model
    called, ``instructions`` the version of the curators' instructions that it got.
    """

    sources_left_out: tuple[int, ...] = ()
    sources_with_instructions: tuple[int, ...] = ()
    calls: tuple[TracedCall, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class AnswerTrace(SearchTrace):
    """The explanation of a search, and what became of its result.

    ``assembly`` are the statistics of :func:`retrieval.search.assembly.assemble`. ``uncalibrated`` names the embedder
    when no thresholds were fitted for it, so that words alone judged. ``evidence`` are the numbers that the confidence
    was estimated from. ``cut_off`` is true if the model had to stop early. It holds no text of a passage, so nothing
    has to be removed when a document is deleted.
    """

    assembly: Mapping[str, int] = field(default_factory=dict)
    prompt: PromptTrace = PromptTrace()
    uncalibrated: str = ""
    evidence: Mapping[str, float] = field(default_factory=dict)
    cut_off: bool = False


def read_trace(stored: Mapping[str, Any]) -> AnswerTrace | None:
    """The trace that is stored with an answer; None if nothing was searched."""
    return from_json(AnswerTrace, stored) if stored else None
