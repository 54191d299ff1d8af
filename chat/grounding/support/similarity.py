"""How near the words of an assertion come to what the passages say: late interaction of token vectors. PURE.

An assertion is compared only when a word of it stands nowhere in its passages, and only with the sentences that share
most words with it. What a passage's words mean is known from when it was read; where it is not, its sentences are
encoded, and to encode all that is cited would take longer than a reader waits.

Source: Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
BERT", SIGIR 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from chat.grounding.support.passages import AssertionCheck, SentenceMatch
    from retrieval.dense.token_vectors import TokenEncoding
    from retrieval.types import Vectors

    EncodeAll = Callable[[Sequence[str]], Sequence[TokenEncoding]]
    """One encoding a text, in order, as a `TokenEmbedder` gives them."""

SENTENCES_COMPARED = 4
"""An assertion is compared with this many sentences: with twice as many nothing is gained but time."""


class Encodings:
    """The encodings of the texts asked for so far; each text is encoded once. ``calibration`` is the embedder's."""

    def __init__(self, encode: EncodeAll) -> None:
        self._encode = encode
        self._known: dict[str, TokenEncoding] = {}

    def __getitem__(self, text: str) -> TokenEncoding:
        return self._known[text]

    def prepare(self, texts: Iterable[str]) -> None:
        """Encodes in one call what is not known yet."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known.update(zip(missing, self._encode(missing), strict=True))


def compared_matches(check: AssertionCheck) -> list[SentenceMatch]:
    """The matches with which an assertion is compared, best first; none when the passages hold all its words."""
    if not check.missing_words or check.verbatim_match:
        return []
    return check.matches[:SENTENCES_COMPARED]


def compared_texts(checks: Iterable[AssertionCheck]) -> Iterable[str]:
    """What has to be encoded before the assertions can be compared."""
    for check in checks:
        if matches := compared_matches(check):
            yield check.assertion.text
            yield from (match.sentence.text for match in matches if match.passage.vectors_within is None)


def word_similarities(check: AssertionCheck, encodings: Encodings) -> Vectors:
    """Similarities, shape (words of the assertion, compared matches): of each word with the nearest token of each
    sentence, on the scale that thresholds are on.

    A word in several pieces counts with their mean. A word that the embedder did not read, and every word where a
    sentence has no token, has the similarity 0.
    """
    words, matches = check.assertion.words, compared_matches(check)
    cosines = np.zeros((len(words), len(matches)), np.float32)
    if not matches:
        return cosines
    encoding = encodings[check.assertion.text]
    tokens = [_vectors_of(match, encodings) for match in matches]
    filled = [column for column, vectors in enumerate(tokens) if len(vectors)]
    if filled and len(encoding.token_vectors):
        similarities = encoding.token_vectors @ np.concatenate([tokens[column] for column in filled]).T
        starts = np.cumsum([0, *(len(tokens[column]) for column in filled[:-1])])
        nearest = np.maximum.reduceat(similarities, starts, axis=1)
        for row, word in enumerate(words):
            spans = encoding.tokens.spans
            own = [at for at, (start, end) in enumerate(spans) if word.start <= start and end <= word.end]
            if own:
                cosines[row, filled] = nearest[own].mean(axis=0)
    return cosines


def _vectors_of(match: SentenceMatch, encodings: Encodings) -> Vectors:
    """The token vectors of a sentence: those that are known of its passage, else its own."""
    if match.passage.vectors_within is not None:
        return match.passage.vectors_within(match.sentence.start, match.sentence.end)
    return encodings[match.sentence.text].token_vectors


def closest_match(check: AssertionCheck, similarities: Vectors) -> SentenceMatch | None:
    """The compared match that holds most of the assertion's weight, where a word that it lacks counts by its cosine.

    None when nothing was compared; of equal matches the one that was ranked higher.
    """
    words = check.assertion.words
    weights = np.array([check.weights[word.stem] for word in words], np.float32)
    best: SentenceMatch | None = None
    most = -1.0
    for column, match in enumerate(compared_matches(check)):
        held = np.array([word.stem in match.sentence.stems for word in words])
        score = float(weights @ np.where(held, 1.0, np.maximum(0.0, similarities[:, column])))
        if score > most:
            best, most = match, score
    return best
