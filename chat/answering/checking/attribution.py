from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from chat.answering.checking.support import THRESHOLD, SupportScorer, extract_assertion, is_refusal_or_courtesy
from chat.answering.checking.verification import build_evidence, is_in_other_language
from chat.answering.checking.words import find_stems, read_asserted_numbers
from core.exceptions import RagsiteError

if TYPE_CHECKING:
    from chat.types import ContextSource

logger = logging.getLogger(__name__)

# Two sentences in different languages have the same meaning if their cosine is at least this.
SAME_MEANING = 0.85
MOST_COMPARED = 64
MOST_PAIRED = 4
SAME_CODE = 0.8


class Attributor:
    """Finds the sources that support a sentence; sources in the model's prompt (``prompted``) come first.

    ``encode`` returns unit vectors of texts, or raises RagsiteError.
    """

    def __init__(
        self, sources: Sequence[ContextSource], prompted: Collection[int], encode: Callable[[Sequence[str]], np.ndarray]
    ) -> None:
        self._encode = encode
        self._prompted = frozenset(prompted)
        self._sources: list[ContextSource] = []
        self.add_sources(sources)

    def add_sources(self, sources: Sequence[ContextSource]) -> None:
        known = {source.marker for source in self._sources}
        self._sources += [source for source in sources if source.marker not in known]
        self._sources.sort(key=lambda source: (source.marker not in self._prompted, source.marker))
        self._passages = [build_evidence(source) for source in self._sources]
        self._scorer = SupportScorer(self._passages)
        self.markers = [source.marker for source in self._sources]

    def find_supporting_source_markers(
        self, sentence: str, written_markers: Sequence[int], text: str
    ) -> tuple[int, ...]:
        """Return the markers of the sources that support a sentence; () if none does.

        ``written_markers`` are those that the model wrote. ``text`` is the answer so far, to detect its language.
        """
        if is_refusal_or_courtesy(sentence):
            return ()
        if extract_assertion(sentence) is None:
            return self._find_source_of_words(sentence)
        markers = self.markers
        supports = {marker: self._score(sentence, (marker,)) for marker in markers}
        if kept := tuple(marker for marker in dict.fromkeys(written_markers) if supports.get(marker, 0.0) >= THRESHOLD):
            return kept
        likely = sorted(markers, key=lambda marker: -supports[marker])[:MOST_PAIRED]
        if likely and supports[likely[0]] >= THRESHOLD:
            return (likely[0],)
        if self._sources and all(is_in_other_language(source, text) for source in self._sources):
            return self._find_markers_by_meaning(sentence)
        return next((pair for pair in combinations(likely, 2) if self._score(sentence, pair) >= THRESHOLD), ())

    def _score(self, sentence: str, markers: Collection[int]) -> float:
        found = self._scorer.score(sentence, markers)
        return found.support if found else 0.0

    def find_code_markers(self, code: str) -> tuple[int, ...]:
        lines = [" ".join(line.split()) for line in code.splitlines()[1:-1] if line.strip()]
        for passage in self._passages if lines else ():
            known = {" ".join(line.split()) for line in passage.text.splitlines()}
            if sum(line in known for line in lines) >= SAME_CODE * len(lines):
                return (passage.marker,)
        return ()

    def _find_source_of_words(self, sentence: str) -> tuple[int, ...]:
        words = set() if sentence.rstrip(" *_`").endswith((":", "?")) else set(find_stems(sentence))
        holders = [passage.marker for passage in self._passages if words and words <= set(find_stems(passage.text))]
        return tuple(holders[:1])

    def _find_markers_by_meaning(self, sentence: str) -> tuple[int, ...]:
        numbers = read_asserted_numbers(sentence)
        holders = [each for each in self._passages if all(values & each.numbers for values in numbers)]
        pieces = [(each.marker, piece.text) for each in holders for piece in each.sentences][:MOST_COMPARED]
        if not pieces:
            return ()
        try:
            vectors = self._encode([sentence, *(text for _, text in pieces)])
        except RagsiteError as error:
            logger.warning("A sentence in another language has no marker: the embedder does not answer: %s", error)
            return ()
        cosines = vectors[1:] @ vectors[0]
        best = int(np.argmax(cosines))
        return (pieces[best][0],) if cosines[best] >= SAME_MEANING else ()
