"""The methods to combine the scores of the vector and the keyword retriever to one ranking.

A new method needs a value in :class:`retrieval.types.SearchMethod` and a description in ``METHODS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from retrieval.normalization import compute_z_scores, scale_to_unit_interval
from retrieval.types import RankedChunk, Retriever, RetrieverWeights, SearchMethod


def _(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class RetrieverResults:
    """The results of one retriever for one search.

    ``listed`` has ranks and scores of the chunks that this retriever returned, by id. ``known`` has this retriever's
    scores of these and further chunks.
    """

    listed: Mapping[int, RankedChunk]
    known: Mapping[int, float]
    candidates: Sequence[int]
    rrf_k: int


def _rank_reciprocally(results: RetrieverResults) -> dict[int, float]:
    """Return 1 / (rrf_k + rank) for each chunk that the retriever returned.

    Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods", SIGIR 2009.
    """
    return {pk: 1.0 / (results.rrf_k + chunk.rank) for pk, chunk in results.listed.items()}


def _scale_scores(results: RetrieverResults) -> dict[int, float]:
    return scale_to_unit_interval(_take_scores(results))


def _standardise_scores(results: RetrieverResults) -> dict[int, float]:
    lowest = min(results.known.values(), default=0.0)
    return compute_z_scores({pk: results.known.get(pk, lowest) for pk in results.candidates})


def _take_scores(results: RetrieverResults) -> dict[int, float]:
    return {pk: chunk.score for pk, chunk in results.listed.items()}


def _keep_weighted_scores(weighted: Mapping[Retriever, float]) -> Mapping[Retriever, float]:
    return weighted


@dataclass(frozen=True, slots=True)
class FusionMethod:
    """A method to compute the score of a passage from the scores of both retrievers.

    - ``worth`` computes values by chunk id from one retriever's results, such as 1 / (60 + rank). Other chunks have 0.
    - ``weights`` are multiplied with these values. None means the weights of the question's class.
    - ``contribute`` converts a passage's products, one for each retriever, to the parts of its score.
    - ``is_single``: only one retriever runs.
    - ``discounts_words``: BM25 gets a lower weight if no candidate has most of the question's words.
    - ``has_bonus``: passages that both retrievers returned get the profile's bonus.
    """

    label: str
    summary: str
    worth: Callable[[RetrieverResults], Mapping[int, float]]
    weights: RetrieverWeights | None
    contribute: Callable[[Mapping[Retriever, float]], Mapping[Retriever, float]] = _keep_weighted_scores
    is_single: bool = False
    discounts_words: bool = False
    has_bonus: bool = False


METHODS: Mapping[SearchMethod, FusionMethod] = {
    SearchMethod.ZSCORE: FusionMethod(
        _("zscore: both scores, standardised and added"),
        "scores in standard deviations from their mean, 0.6 for vectors and 0.4 for keywords, less for these if no "
        "candidate has most of the question's words; both scores of every candidate are looked up",
        _standardise_scores,
        RetrieverWeights(0.6, 0.4),
        discounts_words=True,
    ),
    SearchMethod.RRF: FusionMethod(
        _("rrf: reciprocal ranks, added"),
        "1 / (60 + rank), summed over the retrievers that list it",
        _rank_reciprocally,
        RetrieverWeights(1.0, 1.0),
    ),
    SearchMethod.LINEAR: FusionMethod(
        _("linear: both scores, scaled to 0–1 and added"),
        "scores scaled to 0 to 1 (min-max), half and half",
        _scale_scores,
        RetrieverWeights(0.5, 0.5),
    ),
    SearchMethod.WEIGHTED: FusionMethod(
        _("weighted: linear, with a bonus for what both retrievers found"),
        "as `linear`, 0.7 for vectors and 0.3 for keywords, and 0.1 more for hits of both",
        _scale_scores,
        RetrieverWeights(0.7, 0.3),
        has_bonus=True,
    ),
    SearchMethod.ADAPTIVE: FusionMethod(
        _("adaptive: zscore, weighted by the class of the question"),
        "as `zscore`, with the weights of the question's class",
        _standardise_scores,
        None,
    ),
    SearchMethod.VECTOR: FusionMethod(
        _("vector: by meaning alone"),
        "the score of the vector retriever alone",
        _take_scores,
        RetrieverWeights(1.0, 0.0),
        is_single=True,
    ),
    SearchMethod.LEXICAL: FusionMethod(
        _("lexical: by words alone"),
        "the score of the lexical retriever alone",
        _take_scores,
        RetrieverWeights(0.0, 1.0),
        is_single=True,
    ),
}
