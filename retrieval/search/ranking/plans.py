from __future__ import annotations

from dataclasses import dataclass

from retrieval.exceptions import InvalidQuery
from retrieval.fusion_methods import METHODS
from retrieval.profile_settings import ProfileSettings
from retrieval.types import QueryClass, RetrieverWeights, SearchMethod


@dataclass(frozen=True, slots=True)
class SearchPlan:
    settings: ProfileSettings
    weights: RetrieverWeights
    top_k: int
    depth: int
    retriever_timeout_seconds: float = 5.0

    @property
    def method(self) -> SearchMethod:
        return self.settings.method


def build_plan(
    settings: ProfileSettings,
    query_class: QueryClass = QueryClass.DEFAULT,
    *,
    top_k: int | None = None,
    retriever_timeout_seconds: float = 5.0,
) -> SearchPlan:
    """Return the settings, weights and limits of one search. Raises: InvalidQuery unless 1 <= top_k <= depth."""
    wanted = settings.top_k if top_k is None else top_k
    depth = max(settings.depth, settings.candidate_multiplier * settings.top_k)
    if not 1 <= wanted <= depth:
        raise InvalidQuery(f"top_k must lie between 1 and {depth}, not {wanted}.")
    return SearchPlan(settings, choose_weights(settings, query_class), wanted, depth, retriever_timeout_seconds)


def choose_weights(settings: ProfileSettings, query_class: QueryClass) -> RetrieverWeights:
    """Return the weights of both retrievers.

    If the fusion method has no weights, the profile's weights for this class of questions are used. Otherwise the
    profile's ``weights``, if set, replace the method's, unless only one retriever runs.
    """
    method = METHODS[settings.method]
    if method.weights is None:
        return settings.class_weights[query_class]
    return method.weights if settings.weights is None or method.is_single else settings.weights
