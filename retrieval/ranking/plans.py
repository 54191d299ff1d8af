"""Which numbers a method searches with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.types import QueryClass, RerankPlan, SearchMethod, SearchPlan, Weights

if TYPE_CHECKING:
    from retrieval.ranking.profile import ProfileSettings

# Weights of the textbook-chatbot design, (vector, lexical).
CLASS_WEIGHTS: dict[QueryClass, Weights] = {
    QueryClass.CONCEPTUAL: Weights(0.8, 0.2),
    QueryClass.CODE: Weights(0.5, 0.5),
    QueryClass.TROUBLESHOOTING: Weights(0.6, 0.4),
    QueryClass.COMPARISON: Weights(0.6, 0.4),
    QueryClass.DEFAULT: Weights(0.7, 0.3),
}

METHOD_WEIGHTS: dict[SearchMethod, Weights] = {
    SearchMethod.LEXICAL: Weights(0.0, 1.0),
    SearchMethod.VECTOR: Weights(1.0, 0.0),
    SearchMethod.RRF: Weights(1.0, 1.0),
    SearchMethod.LINEAR: Weights(0.5, 0.5),
    SearchMethod.ZSCORE: Weights(0.6, 0.4),
    # The lexical share is multiplied by the contrast of its scores, which is 0.7 for a typical question.
    SearchMethod.CONTRAST: Weights(0.65, 0.35),
    SearchMethod.WEIGHTED: Weights(0.7, 0.3),
}

NO_RERANKER = "none"


def plan_for(
    profile: ProfileSettings,
    query_class: QueryClass,
    *,
    method: SearchMethod | None = None,
    top_k: int | None = None,
    reranker: str | None = None,
    retriever_timeout_seconds: float = 5.0,
) -> SearchPlan:
    """The plan of one search with a profile.

    Naming a ``method`` asks for that method as it is published: its own weights, no reranker and no boosts, unless
    ``reranker`` names one. Raises: ValueError unless 1 <= top_k <= depth: a list longer than what the retrievers hand over
    would change its head.
    """
    wanted = profile.top_k if top_k is None else top_k
    depth = max(profile.depth, profile.candidate_multiplier * profile.top_k)
    if not 1 <= wanted <= depth:
        raise ValueError(f"top_k must lie between 1 and {depth}, not {wanted}.")
    as_published = method is not None
    method = method or profile.method
    if method is SearchMethod.ADAPTIVE:
        weights = profile.class_weights[query_class]
    elif as_published or profile.weights is None or method in (SearchMethod.LEXICAL, SearchMethod.VECTOR):
        weights = METHOD_WEIGHTS[method]
    else:
        weights = profile.weights
    if reranker is None:
        reranker = NO_RERANKER if as_published else profile.reranker
    return SearchPlan(
        method=method,
        weights=weights,
        top_k=wanted,
        depth=depth,
        rrf_k=60 if as_published else profile.rrf_k,
        both_legs_bonus=0.1 if as_published else profile.both_legs_bonus,
        score_threshold=None if as_published else profile.score_threshold,
        retriever_timeout_seconds=retriever_timeout_seconds,
        oversampling=profile.oversampling,
        fuzzy=profile.fuzzy,
        compounds=profile.compounds,
        rerank=None
        if reranker == NO_RERANKER
        else RerankPlan(
            reranker=reranker,
            depth=profile.rerank_depth,
            weight=profile.rerank_weight,
            timeout_seconds=profile.rerank_timeout_seconds,
        ),
        metadata_boosts=() if as_published else profile.metadata_boosts,
        neighbour_support=0.0 if as_published else profile.neighbour_support,
    )
