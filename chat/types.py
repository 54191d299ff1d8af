"""What travels from a question to its saved answer. Pure Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.search.trace import SearchTrace
    from retrieval.types import AssembledContext, ContextBlock, Passage


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered block of the context: what ``[marker]`` in an answer refers to. Markers start at 1."""

    marker: int
    block: ContextBlock


@dataclass(frozen=True, slots=True)
class VerifiedCitation:
    """A marker of the answer, checked: the words of the source that bear the sentence out.

    The marker is ``text[marker_start:marker_end]`` of the answer; ``quote`` is ``text[start:end]`` of the document.
    ``support`` lies in [0, 1]; None when it was not measured.
    """

    marker: int
    passage: Passage
    quote: str
    start: int
    end: int
    marker_start: int
    marker_end: int
    support: float | None = None


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A sentence of the answer, held against the sources: ``text[start:end]`` of the answer, without closing markers.

    ``markers`` are the sources it cites. ``support`` lies in [0, 1]; None, with ``supported``, when it could not be
    measured. ``reasons`` say what speaks against it: `number`, `name`, `negation`, `words`, `uncited`, or `elsewhere`
    (another source than the cited one bears it out). ``best_marker`` is the source that bears it out best, by the
    document's ``text[best_start:best_end]``.
    """

    start: int
    end: int
    markers: tuple[int, ...]
    support: float | None = None
    supported: bool | None = None
    reasons: tuple[str, ...] = ()
    best_marker: int | None = None
    best_start: int | None = None
    best_end: int | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """What holding an answer against its sources brought: the places its markers mean, and its sentences checked.

    ``measured`` is False when the embedder did not answer, and words alone had to tell.
    """

    citations: tuple[VerifiedCitation, ...]
    statements: tuple[CheckedStatement, ...] = ()
    measured: bool = True


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model consumed for one answer. ``cost`` is in the currency of the prices set; None without prices.

    ``estimated`` says that the server counted nothing and the tokens were reckoned from the text's length.
    """

    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """Sources are known; comes before the first token.

    ``confidence`` is the estimated probability that the sources answer the question, in [0, 1]; None when nobody
    estimated it. ``profile_version`` is the stored search profile's, None for the built-in one.
    """

    sources: tuple[Source, ...]
    context: AssembledContext
    trace: SearchTrace
    confidence: float | None = None
    profile_version: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """The next piece of the answer. A marker is never split over two pieces."""

    text: str


@dataclass(frozen=True, slots=True)
class Completed:
    """The whole answer. ``refused`` means that the documents do not answer the question."""

    text: str
    citations: tuple[VerifiedCitation, ...]
    refused: bool
    generator: str
    notice: str = ""
    statements: tuple[CheckedStatement, ...] = ()
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer. ``message`` is for the person who asked, with a next step."""

    message: str


AnswerEvent = Searched | AnswerToken | Completed | Failed
