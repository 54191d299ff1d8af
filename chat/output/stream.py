"""What a model writes, as it may be stored and shown. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from chat.grounding.citations import MarkerStream
from chat.output.addresses import known_addresses
from chat.output.disclosure import DisclosureStream
from chat.output.links import LinkStream

if TYPE_CHECKING:
    from chat.generators.prompts import Prompt
    from chat.types import ContextSource
    from retrieval.types import Turn


class OutputStream:
    """Passes a model's text on: without the prompt's marks, with markers of known sources alone, and with links alone
    whose addresses stand in the sources that the model was given."""

    def __init__(
        self, prompt: Prompt, question: str, sources: Sequence[ContextSource], history: Sequence[Turn]
    ) -> None:
        conversation = [question, *(text for turn in history for text in (turn.question, turn.answer))]
        prompted = [source for source in sources if source.marker in prompt.markers]
        # The steps look into these two at each piece: what the model is given later on is added to them.
        self._markers = set(prompt.markers)
        self._addresses = set(known_addresses(prompted))
        texts = [source.block.content for source in prompted]
        self._disclosure = DisclosureStream(prompt.secrets, [prompt.nonce], [*texts, *conversation])
        self._steps = (
            MarkStream(prompt.mark),
            self._disclosure,
            MarkerStream(self._markers),
            LinkStream(self._addresses, texts),
        )

    def admit(self, sources: Sequence[ContextSource]) -> None:
        """From now on, the text may name these sources too, and repeat what stands in them."""
        self._markers |= {source.marker for source in sources}
        self._addresses |= set(known_addresses(sources))
        self._disclosure.allow([source.block.content for source in sources])

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty. Raises: AnswerWithheld."""
        for step in self._steps:
            piece = step.feed(piece)
        return piece

    def close(self) -> str:
        """What was held back, at the end of the stream. Raises: AnswerWithheld."""
        rest = ""
        for step in self._steps:
            rest = step.feed(rest) + step.close()
        return rest


class MarkStream:
    """Passes streamed text on without a mark of the prompt (retrieval.language_models.marking) and the space behind."""

    def __init__(self, mark: str) -> None:
        self._forms = (f"{mark} ", mark)
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty."""
        text = _without(self._held + piece, self._forms[:1])
        longest = self._forms[0]
        cut = next(
            (size for size in range(min(len(longest) - 1, len(text)), 0, -1) if longest.startswith(text[-size:])), 0
        )
        self._held = text[len(text) - cut :]
        return _without(text[: len(text) - cut], self._forms)

    def close(self) -> str:
        """What was held back, at the end of the stream."""
        held, self._held = self._held, ""
        return _without(held, self._forms)


def _without(text: str, forms: Iterable[str]) -> str:
    for form in forms:
        text = text.replace(form, "")
    return text
