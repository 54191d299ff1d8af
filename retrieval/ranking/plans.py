"""Which numbers a method searches with."""

from __future__ import annotations

from retrieval.types import QueryClass, SearchMethod, SearchPlan, Weights

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
    SearchMethod.WEIGHTED: Weights(0.7, 0.3),
}


def plan_for(
    method: SearchMethod,
    query_class: QueryClass,
    *,
    top_k: int,
    depth: int,
    score_threshold: float | None = None,
    leg_timeout_seconds: float = 5.0,
) -> SearchPlan:
    """The plan of one search; `adaptive` takes its weights from the class, every other method has its own.

    Raises: ValueError unless 1 <= top_k <= depth: a list longer than what the legs hand over would change its head.
    """
    if not 1 <= top_k <= depth:
        raise ValueError(f"top_k must lie between 1 and {depth}, not {top_k}.")
    weights = CLASS_WEIGHTS[query_class] if method is SearchMethod.ADAPTIVE else METHOD_WEIGHTS[method]
    return SearchPlan(
        method=method,
        weights=weights,
        top_k=top_k,
        depth=depth,
        score_threshold=score_threshold,
        leg_timeout_seconds=leg_timeout_seconds,
    )
