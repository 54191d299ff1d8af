"""The interface of answer generators."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from chat.answering.sources import TablesOfQuestion
    from chat.types import AnswerDraft
    from retrieval.types import Turn


class AnswerGenerator(Protocol):
    """A language model that writes an answer from numbered sources."""

    name: str
    may_refuse: bool

    def compose(
        self, draft: AnswerDraft, history: Sequence[Turn], tables: TablesOfQuestion | None = None
    ) -> AsyncIterator[str]:
        """Pieces of the answer to the draft's question, with ``[n]`` behind each sentence that source n supports; keeps
        the draft up to date.

        ``history`` are the conversation's earlier turns, oldest first, ``tables`` are those that the model may query.
        Raises: NoAnswer if the model says that the sources do not answer the question, GenerationFailed if there will
        be no (more) text. Closing the iterator stops the work.
        """
