"""What a generator of answers must do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from chat.types import Asked, ContextSource, TracedCall, Usage
    from retrieval.types import Turn


@dataclass(slots=True)
class PartialAnswer:
    """What is known of an answer while it is being written, also when it never comes to its end.

    ``usage`` is None while no model was asked. ``cut_off`` says that the model had to stop before its end, ``filtered``
    that its server's filter stopped it, ``withheld`` why its text must not be shown. ``left_out`` are the markers of
    sources that did not fit into the prompt. ``calls`` are the functions that the model called. ``looped`` says that
    the model repeated itself and was stopped, ``has_machinery`` that some of its text was no answer and was left out.
    """

    generator: str = ""
    usage: Usage | None = None
    prompt_version: int | None = None
    cut_off: bool = False
    filtered: bool = False
    withheld: str = ""
    left_out: tuple[int, ...] = ()
    looped: bool = False
    has_machinery: bool = False
    calls: list[TracedCall] = field(default_factory=list)


class AskableTables(Protocol):
    """The tables that the asker of one question may see. ``names`` tells some of them, with their columns."""

    names: Sequence[str]

    async def ask(self, question: str) -> Asked | None:
        """What they say; None when the question cannot be read with confidence. Raises: TablesUnavailable."""


class AnswerGenerator(Protocol):
    """A language model that writes an answer from numbered sources."""

    name: str
    may_refuse: bool

    def compose(
        self,
        question: str,
        sources: Sequence[ContextSource],
        history: Sequence[Turn],
        partial: PartialAnswer,
        tables: AskableTables | None = None,
    ) -> AsyncIterator[str]:
        """Pieces of the answer, with ``[n]`` behind each sentence that source n supports; keeps ``partial`` up to date.

        ``history`` are the conversation's earlier turns, oldest first, ``tables`` are those that the model may ask
        itself. Raises: NoAnswer when the model says that the sources do not answer the question, GenerationFailed when
        there will be no (more) text. Closing the iterator stops the work.
        """
