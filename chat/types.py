"""What travels from a question to its saved answer. Pure Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.types import AssembledContext, ContextBlock, Passage, SearchTrace


@dataclass(frozen=True, slots=True)
class Source:
    """A numbered block of the context: what ``[marker]`` in an answer refers to. Markers start at 1."""

    marker: int
    block: ContextBlock


@dataclass(frozen=True, slots=True)
class VerifiedCitation:
    """A marker of the answer, checked: the words of the source that bear the sentence out.

    ``quote`` is the document's ``text[start:end]``. ``support`` lies in [0, 1]; None when it was not measured.
    """

    marker: int
    passage: Passage
    quote: str
    start: int
    end: int
    support: float | None = None


@dataclass(frozen=True, slots=True)
class Searched:
    """Sources are known; comes before the first token."""

    sources: tuple[Source, ...]
    context: AssembledContext
    trace: SearchTrace


@dataclass(frozen=True, slots=True)
class Token:
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


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer. ``message`` is for the person who asked, with a next step."""

    message: str


AnswerEvent = Searched | Token | Completed | Failed
