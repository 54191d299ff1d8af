"""An answer that repeats what the model was told in confidence is recognised while it is streamed. PURE.

Letters and digits alone are compared, so that case, punctuation, spaces and Markdown hide nothing; the text read
backwards, in ROT13, base64 and hexadecimal is recognised too. A translation or a retelling is not.
"""

from __future__ import annotations

import base64
import codecs
import functools
import unicodedata
from collections.abc import Sequence

from chat.exceptions import AnswerWithheld

# Characters that are compared at once; as many are shown at most before the rest is held back.
GRAM = 16
# So many of them in a row, about eight words, are a repetition. Common sentences share less with the prompt.
LONGEST_SHARED = 40
# And so many in all, wherever they stand: words may be changed here and there.
MOST_SHARED = 120


class DisclosureStream:
    """Passes streamed text on until it repeats a secret text.

    ``secrets`` are what must not be repeated. What stands in one of the ``allowed`` texts, such as a source, may be
    repeated. The work is proportional to the text.
    """

    def __init__(self, secrets: Sequence[str], allowed: Sequence[str]) -> None:
        self._grams = _grams_of(tuple(secrets))
        self._texts = allowed
        self._allowed: str | None = None
        self._judged: dict[str, bool] = {}
        self._last = ""
        self._in_a_row = 0
        self._shared: set[str] = set()
        self._held: list[str] = []

    def allow(self, texts: Sequence[str]) -> None:
        """From now on, what stands in one of these texts may be repeated too."""
        self._texts = [*self._texts, *texts]
        self._allowed = None
        self._judged.clear()

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty. Raises: AnswerWithheld when the text repeats a secret."""
        shown: list[str] = []
        begin = 0
        for at, sign in enumerate(piece):
            if not sign.isalnum():
                continue
            was_shared = self._in_a_row > 0
            for letter in sign.lower() if sign.isascii() else _letters(sign):
                self._read(letter)
            if was_shared != (self._in_a_row > 0):
                shown += [*self._held, piece[begin:at]]
                self._held, begin = [], at
        (self._held if self._in_a_row else shown).append(piece[begin:])
        return "".join(shown)

    def close(self) -> str:
        """What was held back, at the end of the stream."""
        held, self._held = self._held, []
        return "".join(held)

    def _read(self, letter: str) -> None:
        self._last = (self._last + letter)[-GRAM:]
        if self._last not in self._grams or self._may_be_said(self._last):
            self._in_a_row = 0
            return
        self._in_a_row += 1
        self._shared.add(self._last)
        if self._in_a_row + GRAM > LONGEST_SHARED or len(self._shared) > MOST_SHARED:
            raise AnswerWithheld("prompt")

    def _may_be_said(self, gram: str) -> bool:
        if gram not in self._judged:
            if self._allowed is None:
                self._allowed = "\n".join(map(_letters, self._texts))
            self._judged[gram] = gram in self._allowed
        return self._judged[gram]


@functools.lru_cache(maxsize=8)
def _grams_of(secrets: tuple[str, ...]) -> frozenset[str]:
    grams: set[str] = set()
    for secret in secrets:
        plain = _letters(secret)
        forms = [plain, plain[::-1], codecs.encode(plain, "rot13"), secret.encode().hex()]
        for shift in range(3):
            # In base64 a text looks one of three ways, by where in the whole it begins; its ends depend on the rest.
            forms.append(_letters(base64.b64encode(b" " * shift + secret.encode()).decode()[4:-4]))
        for form in forms:
            grams.update(form[at : at + GRAM] for at in range(len(form) - GRAM + 1))
    return frozenset(grams)


def _letters(text: str) -> str:
    """The letters and digits of the text, small and without accents."""
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return "".join(filter(str.isalnum, plain.casefold()))
