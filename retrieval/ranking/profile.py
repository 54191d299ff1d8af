"""What an admin tunes, as one object: every number of a search that is not the question's own.

A stored search profile is this dataclass as JSON, so that an old version can be searched with, compared and published
again. A profile is valid or it does not exist: :func:`from_json` names every field that is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from retrieval.ranking.plans import CLASS_WEIGHTS
from retrieval.types import MetadataBoost, QueryClass, SearchMethod, Weights

LARGEST_DEPTH = 200
LARGEST_BUDGET_TOKENS = 8000


class ImproperProfile(ValueError):
    """Settings that no search can run with. For the admin who edits them: ``errors`` maps field to sentence."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {message}" for name, message in errors.items()))
        self.errors = dict(errors)


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """All that shapes a search and its context.

    ``weights`` None means the method's own; ``class_weights`` serve `adaptive`. Each leg hands over ``depth`` chunks,
    or ``candidate_multiplier`` times ``top_k`` if that is more; the vector index looks at ``oversampling`` times as
    many. ``reranker`` names one of the site's; ``rerank_weight`` None lets it decide the order alone, a number adds its
    opinion to the fused score. Raises: ImproperProfile.
    """

    method: SearchMethod = SearchMethod.ZSCORE
    weights: Weights | None = None
    class_weights: Mapping[QueryClass, Weights] = field(default_factory=lambda: dict(CLASS_WEIGHTS))
    rrf_k: int = 60
    both_legs_bonus: float = 0.1
    top_k: int = 8
    depth: int = 50
    candidate_multiplier: int = 4
    oversampling: int = 5
    score_threshold: float | None = None
    fuzzy: bool = True
    reformulate: bool = True
    reranker: str = "none"
    rerank_depth: int = 50
    rerank_weight: float | None = 0.5
    rerank_timeout_seconds: float = 2.0
    metadata_boosts: tuple[MetadataBoost, ...] = ()
    context_budget_tokens: int = 4000
    context_neighbours: int = 1
    context_blocks: int = 8

    def __post_init__(self) -> None:
        errors = {
            name: f"must lie between {low:g} and {high:g}, not {value}"
            for name, (low, high) in _RANGES.items()
            if (value := getattr(self, name)) is not None and not (_is_number(value) and low <= value <= high)
        }
        if missing := [query_class.value for query_class in QueryClass if query_class not in self.class_weights]:
            errors["class_weights"] = f"has no weights for {', '.join(missing)}"
        if "top_k" not in errors and "depth" not in errors and self.top_k > self.depth:
            errors["top_k"] = f"must not be larger than the depth of {self.depth}"
        if errors:
            raise ImproperProfile(errors)


_RANGES: dict[str, tuple[float, float]] = {
    "rrf_k": (1, 10_000),
    "both_legs_bonus": (0, 10),
    "top_k": (1, LARGEST_DEPTH),
    "depth": (1, LARGEST_DEPTH),
    "candidate_multiplier": (1, 50),
    "oversampling": (1, 50),
    "score_threshold": (-1000, 1000),
    "rerank_depth": (1, LARGEST_DEPTH),
    "rerank_weight": (0, 10),
    "rerank_timeout_seconds": (0.01, 60),
    "context_budget_tokens": (1, LARGEST_BUDGET_TOKENS),
    "context_neighbours": (0, 5),
    "context_blocks": (1, 8),
}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def to_json(profile: ProfileSettings) -> dict[str, Any]:
    """The settings as JSON's types; :func:`from_json` gives them back."""
    values = asdict(profile)
    values["method"] = profile.method.value
    values["class_weights"] = {
        query_class.value: {"vector": weights.vector, "lexical": weights.lexical}
        for query_class, weights in profile.class_weights.items()
    }
    values["metadata_boosts"] = list(values["metadata_boosts"])
    return values


def from_json(values: Mapping[str, Any]) -> ProfileSettings:
    """The settings of a stored profile; what it does not name has its default, so that old versions stay readable.

    Raises: ImproperProfile for an unknown field or an impossible value.
    """
    known = {each.name for each in fields(ProfileSettings)}
    errors = {name: "is not a setting" for name in values if name not in known}
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name in known:
            try:
                read[name] = _READERS.get(name, _as_it_is)(value)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                errors[name] = str(error) or type(error).__name__
    if errors:
        raise ImproperProfile(errors)
    return ProfileSettings(**read)


def _as_it_is(value: Any) -> Any:
    return value


def _weights(value: Any) -> Weights:
    return Weights(vector=float(value["vector"]), lexical=float(value["lexical"]))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise ValueError(f"must be a whole number, not {value!r}")
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"must be true or false, not {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be text, not {value!r}")
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    "method": SearchMethod,
    "weights": lambda value: None if value is None else _weights(value),
    "class_weights": lambda value: {QueryClass(name): _weights(weights) for name, weights in value.items()},
    "metadata_boosts": lambda value: tuple(MetadataBoost(**boost) for boost in value),
    "fuzzy": _flag,
    "reformulate": _flag,
    "reranker": _text,
    **dict.fromkeys(
        (
            "rrf_k",
            "top_k",
            "depth",
            "candidate_multiplier",
            "oversampling",
            "rerank_depth",
            "context_budget_tokens",
            "context_neighbours",
            "context_blocks",
        ),
        _whole,
    ),
}
