"""What a model writes, as it may be stored and shown. PURE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from chat.answering.addresses import known_addresses
from chat.answering.attribution import AttributionStream, Attributor
from chat.answering.citations import MarkerStream
from chat.answering.disclosure import DisclosureStream
from chat.answering.invented_links import LinkStream
from chat.answering.tool_calls import FUNCTION
from chat.exceptions import AnswerWithheld

if TYPE_CHECKING:
    import numpy as np

    from chat.answering.prompts import Prompt
    from chat.types import ContextSource
    from retrieval.types import Turn


class OutputStream:
    """Passes a model's text on: with the markers that the site finds for its sentences, and with links alone whose
    addresses stand in the sources that the model was given. ``sources`` are all that were found."""

    def __init__(
        self,
        prompt: Prompt,
        question: str,
        sources: Sequence[ContextSource],
        history: Sequence[Turn],
        encode: Callable[[Sequence[str]], np.ndarray],
    ) -> None:
        conversation = [question, *(text for turn in history for text in (turn.question, turn.answer))]
        prompted = [source for source in sources if source.marker in prompt.markers]
        # The steps look into these two at each piece: what the model is given later on is added to them.
        self._markers = {source.marker for source in sources}
        self._addresses = set(known_addresses(prompted))
        texts = [source.block.content for source in prompted]
        self._hides_function = not any(FUNCTION in text for text in [*texts, *conversation])
        self._last = ""
        self._disclosure = DisclosureStream(prompt.secrets, [*texts, *conversation])
        self._attribution = AttributionStream(Attributor(sources, prompt.markers, encode))
        self._filters = (self._disclosure, MarkerStream(self._markers), LinkStream(self._addresses, texts))

    @property
    def gives_up(self) -> bool:
        """Whether the text, at its end, only says that the sources do not answer."""
        return self._attribution.gives_up

    def admit(self, sources: Sequence[ContextSource]) -> None:
        """From now on, the text may name these sources too, and repeat what stands in them."""
        self._markers |= {source.marker for source in sources}
        self._addresses |= set(known_addresses(sources))
        self._disclosure.allow([source.block.content for source in sources])
        self._attribution.admit(sources)

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty. Raises: AnswerWithheld, LoopingAnswer."""
        self._last = self._last[-len(FUNCTION) :] + piece
        if self._hides_function and FUNCTION in self._last:
            raise AnswerWithheld("function")
        for step in self._filters:
            piece = step.feed(piece)
        return self._attribution.feed(piece) if piece else ""

    def close(self, *, is_cut: bool = False) -> str:
        """What was held back, at the end of the stream. Raises: AnswerWithheld, LoopingAnswer."""
        rest = ""
        for step in self._filters:
            rest = step.feed(rest) + step.close()
        return self._attribution.feed(rest) + self._attribution.close(is_cut=is_cut)

    def stop(self) -> str:
        """What was held back of a sentence, where the stream ends before its end."""
        return self._attribution.close()
