"""Estimate the probability that the sources answer a question.

The method is a logistic regression (Cox, "The Regression Analysis of Binary Sequences", Journal of the Royal
Statistical Society, 1958) on three features. docs/quality.md reports how often the site refuses or
answers a question wrongly.

- closeness: the similarity of the question and the closest passage, by their vectors;
- coverage: the largest share of the question's words in a passage;
- unknown_name: whether the question has a name that no document contains.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chat.answering.checking.verification import is_in_other_language
from chat.answering.checking.words import compute_stem_weight, find_stems, find_stems_of_texts
from chat.answering.units import QuotableUnit, build_text_to_encode, find_quotable_units
from chat.types import ContextSource
from core.exceptions import RagsiteError
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import encode_query
from retrieval.search.ranking.preferences import PASSABLE_CLOSENESS
from retrieval.search.understanding.named_subject import remove_identifier_prefix
from retrieval.text.language import detect_language
from retrieval.text.markup import strip_markup
from retrieval.text.word_lists import fill_in, read_words
from retrieval.types import GIVEN_QUESTION, Retriever

if TYPE_CHECKING:
    from retrieval.index.closeness import Calibration
    from retrieval.search.trace import SearchTrace
    from retrieval.types import Candidate

logger = logging.getLogger(__name__)

# The site answers 392 of 419 answerable questions, and 66 of 392 questions about missing subjects. It answers 394 and
# 94 if the weight of `unknown_name` is 0.
INTERCEPT = -3.0
WEIGHTS: Mapping[str, float] = {"closeness": 3.0, "coverage": 3.0, "unknown_name": -2.0}
# A passage in another language shares no words with the question, so only its closeness counts. This weight makes the
# site refuse 93 to 98 % of questions about other subjects, and 32 to 37 % of questions about the documents' subject.
WEIGHTS_OF_ANOTHER_LANGUAGE: Mapping[str, float] = {"foreign_closeness": 12.0}
# These weights are used if the embedder gave no vectors, or if its closeness was never calibrated.
WEIGHTS_OF_WORDS: Mapping[str, float] = {"coverage": 6.0}

# At this probability or above, the passages are shown as an answer; below it, as the closest results.
ANSWERABLE = 0.6
# If there are no vectors, this limit replaces ANSWERABLE: a passage must contain half of the question's words.
ANSWERABLE_BY_WORDS = 0.5
# Below this probability, no language model is asked.
HOPELESS = 0.1
# Below this probability, the page shows only the titles of documents. In a test, the probability was below this limit
# for 7 of 8 questions about other subjects, and for 1 of 32 questions about a subject similar to the documents'.
NEAR = 0.2
MOST_COMPARED = 16
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[^\s.!?\n](?:[^.!?\n]|[.](?=\w))*[.!?]?")
_OPENING = re.compile(fill_in(r"[^,:]+[,:]\s+(?=<asking>\b)", "questions"), re.IGNORECASE)
_CLOSING = re.compile(r",\s+(?:please\s+)?[^\W\d_]+\s*\?$")
_CONTRACTED = re.compile(r"['’](?:m|d|ll|ve|re|t)\b", re.IGNORECASE)
_CALENDAR = read_words("documents", "calendar")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The estimated ``probability``, 0 to 1, that the sources answer the question.

    The probability is also estimated for each source as if it were the only source.

    - ``by_words``: true if no vectors were compared.
    - ``closeness``: maps the marker of each source to the source's similarity to the question.
    - ``alone``: the markers of the sources whose own probability is at least ANSWERABLE.
    - ``near``: the markers of the sources whose own probability is at least NEAR.
    """

    probability: float
    features: Mapping[str, float]
    by_words: bool
    closeness: Mapping[int, float]
    alone: frozenset[int] = frozenset()
    near: frozenset[int] = frozenset()

    @property
    def is_answerable(self) -> bool:
        return self.probability >= (ANSWERABLE_BY_WORDS if self.by_words else ANSWERABLE)

    @property
    def is_near_question(self) -> bool:
        return self.by_words or self.probability >= NEAR

    @property
    def is_hopeless(self) -> bool:
        """True if the sources are so unlike the question that no model is called; False if there are no vectors."""
        return not self.by_words and self.probability < HOPELESS


def estimate_evidence(
    trace: SearchTrace, sources: Sequence[ContextSource], calibration: Calibration | None
) -> Evidence:
    """Return the probability that ``sources`` answer the question of the search. ``trace`` describes this search."""
    if not sources:
        return Evidence(0.0, {}, by_words=False, closeness={})
    by_id = {candidate.chunk_id: candidate for candidate in trace.candidates}
    coverage = {
        each.marker: _measure_coverage(trace.query, each, by_id.get(each.block.best.chunk_id)) for each in sources
    }
    cosines = {
        each.chunk_id: cosine for each in trace.candidates if (cosine := _get_candidate_cosine(each)) is not None
    }
    features = {"coverage": max(coverage.values())}
    if any(_has_canonical_question_boost(by_id.get(each.block.best.chunk_id)) for each in sources):
        return Evidence(1.0, {**features, "given": 1.0}, by_words=not cosines, closeness={})
    if calibration is None or not cosines:
        return Evidence(_compute_probability(features, WEIGHTS_OF_WORDS), features, True, {})
    closeness = {
        source.marker: calibration.convert_to_closeness(cosines[source.block.best.chunk_id])
        for source in sources
        if source.block.best.chunk_id in cosines
    }
    features["closeness"] = max(closeness.values(), default=0.0)
    if find_unknown_names(trace, sources):
        features["unknown_name"] = 1.0
    foreign = _find_sources_in_other_language(trace.query, sources) if calibration.across_languages else frozenset()
    # If a passage in the question's language is close enough, passages in another language count only if they are
    # closer.
    own = max((near for marker, near in closeness.items() if marker not in foreign), default=0.0)
    least = own if own >= PASSABLE_CLOSENESS else -math.inf
    across = frozenset(marker for marker in foreign if closeness.get(marker, 0.0) > least)
    if across:
        features["foreign_closeness"] = max(closeness.get(marker, 0.0) for marker in across)
    own_probability = {
        marker: _estimate_answer_probability(
            {"coverage": coverage[marker], "closeness": near, "unknown_name": features.get("unknown_name", 0.0)}
            | ({"foreign_closeness": near} if marker in across else {})
        )
        for marker, near in closeness.items()
    }
    alone, near_ones = (
        frozenset(marker for marker, probability in own_probability.items() if probability >= enough)
        for enough in (ANSWERABLE, NEAR)
    )
    return Evidence(_estimate_answer_probability(features), features, False, closeness, alone, near_ones)


def _estimate_answer_probability(features: Mapping[str, float]) -> float:
    probability = _compute_probability(features, WEIGHTS)
    if "foreign_closeness" in features:
        probability = max(probability, _compute_probability(features, WEIGHTS_OF_ANOTHER_LANGUAGE))
    return probability


def _compute_probability(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    logit = INTERCEPT + sum(weight * features.get(name, 0.0) for name, weight in weights.items())
    return 1.0 / (1.0 + math.exp(-logit))


def _find_sources_in_other_language(question: str, sources: Sequence[ContextSource]) -> frozenset[int]:
    return frozenset(source.marker for source in sources if is_in_other_language(source, question))


def _has_canonical_question_boost(candidate: Candidate | None) -> bool:
    return candidate is not None and any(each.name == GIVEN_QUESTION for each in candidate.boosts)


def find_unknown_names(trace: SearchTrace, sources: Sequence[ContextSource]) -> list[str]:
    """Return the names in the question that no searched document contains, not even in a similar spelling."""
    unknown = {word.lower() for retriever in trace.retrievers for word in retriever.unknown_words}
    is_foreign = bool(sources) and len(_find_sources_in_other_language(trace.query, sources)) == len(sources)
    capitals_are_names = bool(detect_language(trace.query)) and not is_foreign
    start, end = _find_asking_clause(trace.query)
    found = [word for word in _WORD.finditer(trace.query, start, end) if word[0].lower() in unknown]
    return list(dict.fromkeys(word[0] for word in found if _is_name(word, trace.query, capitals_are_names)))


def _find_asking_clause(question: str) -> tuple[int, int]:
    sentences = [sentence.span() for sentence in _SENTENCE.finditer(question)]
    asking = [(start, end) for start, end in sentences if question[end - 1] == "?"]
    start, end = (asking or sentences or [(0, len(question))])[-1]
    if (opening := _OPENING.match(question, start, end)) is not None:
        start = opening.end()
    if (closing := _CLOSING.search(question, start, end)) is not None:
        end = closing.start()
    return start, end


def _is_name(word: re.Match[str], question: str, capitals_are_names: bool) -> bool:
    if word[0].lower() in _CALENDAR or _CONTRACTED.match(question, word.end()) or question[: word.start()][-1:] in "'’":
        return False
    letters, before = word[0], question[: word.start()].rstrip(" \t\"'(")
    is_plain = letters == "I" or not before or before[-1] in ".!?:;\n"
    return any(map(str.isupper, letters[1:])) or (capitals_are_names and letters[0].isupper() and not is_plain)


def _get_candidate_cosine(candidate: Candidate) -> float | None:
    found = candidate.retrievers.get(Retriever.VECTOR)
    return found.score if found is not None else None


def _measure_coverage(question: str, source: ContextSource, candidate: Candidate | None) -> float:
    if candidate is not None and candidate.word_share is not None:
        return candidate.word_share
    asked = find_stems(question)
    best = source.block.best
    return len(find_stems_of_texts(best.document_title, best.section, best.content).intersection(asked)) / (
        len(asked) or 1
    )


def list_units_of_best_chunk(source: ContextSource) -> list[QuotableUnit]:
    best = source.block.best
    return [unit for unit in find_quotable_units([source]) if unit.end > best.start and unit.start < best.end]


def find_nearest_quotable_unit(question: str, source: ContextSource, *, by_meaning: bool = True) -> QuotableUnit | None:
    """Return the sentence, list item or table row that is closest to the question, from the source's best passage.

    If no words match, vectors are compared; without ``by_meaning``, the first of these units is returned. The result is
    None if there are none.
    """
    return find_nearest(question, list_units_of_best_chunk(source), by_meaning=by_meaning)


def find_nearest(question: str, units: Sequence[QuotableUnit], *, by_meaning: bool = True) -> QuotableUnit | None:
    if len(units) < 2:
        return next(iter(units), None)
    texts = [
        find_stems_of_texts(unit.heading, unit.table_head, strip_markup(unit.text, all_links=True)) for unit in units
    ]
    if (bare := remove_identifier_prefix(question)) != question:
        # A code from an earlier question, such as a part number, only breaks ties between the scores for the question's
        # words.
        alone = _compute_weights(bare, texts)
        kept = [at for at, share in enumerate(alone) if share == max(alone)]
        units, texts = [units[at] for at in kept], [texts[at] for at in kept]
    shares = _compute_weights(question, texts)
    first = [unit for unit, share in zip(units, shares, strict=True) if share == max(shares)]
    if max(shares):
        # If several blocks contain a unit with the best score, only the first block is used, because a section usually
        # names its subject at its beginning.
        asked = _count_ngrams(question)
        alike = [unit for unit in first if unit.block == first[0].block]
        return max(alike, key=lambda unit: (asked & _count_ngrams(strip_markup(unit.text, all_links=True))).total())
    if not by_meaning:
        return first[0]
    first = first[:MOST_COMPARED]
    try:
        vectors = np.asarray(
            embedder_choice.get_embedder().embed_documents([build_text_to_encode(unit) for unit in first])
        )
        return first[int(np.argmax(vectors @ encode_query(question)))]
    except RagsiteError as error:
        logger.warning("The first place of a passage is marked, because the embedder does not answer: %s", error)
        return first[0]


def _compute_weights(question: str, texts: Sequence[AbstractSet[str]]) -> list[float]:
    weights = {
        stem: compute_stem_weight(sum(stem in held for held in texts), len(texts)) for stem in find_stems(question)
    }
    return [round(sum(weights[stem] for stem in sorted(weights.keys() & text)), 6) for text in texts]


def _count_ngrams(text: str) -> Counter[str]:
    plain = f" {' '.join(_WORD.findall(text.lower()))} "
    return Counter(plain[at : at + 4] for at in range(len(plain) - 3))
