"""How near the words of a claim come to what the passages say: late interaction of token vectors. PURE.

A claim is compared only when a word of it stands nowhere in its passages, and only with the sentences that share most
words with it: to embed all that is cited would take longer than a reader waits.

Source: Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
BERT", SIGIR 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chat.grounding.support.places import missing_words, ranked_places

if TYPE_CHECKING:
    from chat.grounding.support.claims import Claim
    from chat.grounding.support.passages import Evidence, EvidencePassage
    from chat.grounding.support.places import Place
    from retrieval.dense.token_vectors import TokenEncoding
    from retrieval.types import Vectors

    EncodeAll = Callable[[Sequence[str]], Sequence[TokenEncoding]]
    """One encoding a text, in order, as a `TokenEmbedder` gives them."""

SENTENCES_COMPARED = 4
"""A claim is compared with this many sentences: with twice as many nothing is gained but time."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Cosines, shape (words of the claim, places): of each word with the nearest token of each place's sentence."""

    places: tuple[Place, ...]
    cosines: Vectors

    def nearest(self, word: int) -> float:
        """The best that the word, by its number in the claim, finds anywhere; 0 where there is nothing to find."""
        return max(0.0, float(self.cosines[word].max())) if self.places else 0.0


class Encodings:
    """The encodings of the texts asked for so far; each text is encoded once."""

    def __init__(self, encode: EncodeAll) -> None:
        self._encode = encode
        self._known: dict[str, TokenEncoding] = {}

    def prepare(self, texts: Iterable[str]) -> None:
        """Encodes in one call what is not known yet."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known.update(zip(missing, self._encode(missing), strict=True))

    def of(self, text: str) -> TokenEncoding:
        self.prepare([text])
        return self._known[text]


def compared_places(claim: Claim, scope: Sequence[EvidencePassage], evidence: Evidence) -> tuple[Place, ...]:
    """The places with which a claim is compared, best first; none when the passages hold all its words."""
    if not missing_words(claim, scope):
        return ()
    return tuple(ranked_places(claim, scope, evidence)[:SENTENCES_COMPARED])


def compare(claim: Claim, places: Sequence[Place], encodings: Encodings) -> Comparison:
    """The claim's words against the places' sentences.

    A word in several pieces counts with their mean. A word that the embedder did not read, and every word where a
    sentence has no token, has the cosine 0.
    """
    if not places:
        return Comparison((), np.zeros((len(claim.words), 0), np.float32))
    encoding = encodings.of(claim.text)
    tokens = [encodings.of(place.sentence.text).token_vectors for place in places]
    filled = [column for column, vectors in enumerate(tokens) if len(vectors)]
    cosines = np.zeros((len(claim.words), len(places)), np.float32)
    if filled and len(encoding.token_vectors):
        similarities = encoding.token_vectors @ np.concatenate([tokens[column] for column in filled]).T
        starts = np.cumsum([0, *(len(tokens[column]) for column in filled[:-1])])
        nearest = np.maximum.reduceat(similarities, starts, axis=1)
        for row, word in enumerate(claim.words):
            spans = encoding.tokens.spans
            own = [at for at, (start, end) in enumerate(spans) if word.start <= start and end <= word.end]
            if own:
                cosines[row, filled] = nearest[own].mean(axis=0)
    return Comparison(tuple(places), cosines)


def closest(claim: Claim, comparison: Comparison, evidence: Evidence) -> Place | None:
    """The compared place that holds most of the claim's weight, a word that it does not hold counting by its cosine.

    None when nothing was compared; of equal places the one that was ranked higher.
    """
    weights = np.array([evidence.weight(word.stem) for word in claim.words], np.float32)
    best: Place | None = None
    most = -1.0
    for column, place in enumerate(comparison.places):
        held = np.array([word.stem in place.sentence.stems for word in claim.words])
        score = float(weights @ np.where(held, 1.0, np.maximum(0.0, comparison.cosines[:, column])))
        if score > most:
            best, most = place, score
    return best
