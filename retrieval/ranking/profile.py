"""What an admin tunes, as one object: every number of a search that is not the question's own.

A stored search profile is this dataclass as JSON, so that an old version can be searched with, compared and published
again. A profile is valid or it does not exist: :func:`from_json` names every field that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from retrieval.ranking.plans import CLASS_WEIGHTS
from retrieval.types import MetadataBoost, QueryClass, SearchMethod, Weights

LARGEST_DEPTH = 200
LARGEST_BUDGET_TOKENS = 8000
LARGEST_WEIGHT = 100


class ImproperProfile(ValueError):
    """Settings that no search can run with. For the admin who edits them: ``errors`` maps field to sentence."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {message}" for name, message in errors.items()))
        self.errors = dict(errors)


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """All that shapes a search and its context.

    ``weights`` None means the method's own; ``class_weights`` serve `adaptive`. Each retriever hands over ``depth`` chunks,
    or ``candidate_multiplier`` times ``top_k`` if that is more; the vector index looks at ``oversampling`` times as
    many. ``reranker`` names one of the site's; ``rerank_weight`` None lets it decide the order alone, a number adds its
    opinion to the fused score. ``neighbour_support`` lifts candidates towards those they resemble.
    Raises: ImproperProfile.
    """

    method: SearchMethod = SearchMethod.CONTRAST
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
    compounds: bool = True
    reformulate: bool = True
    reranker: str = "none"
    rerank_depth: int = 50
    rerank_weight: float | None = 0.5
    rerank_timeout_seconds: float = 2.0
    metadata_boosts: tuple[MetadataBoost, ...] = ()
    neighbour_support: float = 0.35
    context_budget_tokens: int = 4000
    context_neighbours: int = 1
    context_blocks: int = 8

    def __post_init__(self) -> None:
        errors = {
            name: f"must lie between {low:g} and {high:g}, not {getattr(self, name)}"
            for name, (low, high) in RANGES.items()
            if not _is_within(getattr(self, name), low, high, optional=name in OPTIONAL)
        }
        if missing := [query_class.value for query_class in QueryClass if query_class not in self.class_weights]:
            errors["class_weights"] = f"has no weights for {', '.join(missing)}"
        if "top_k" not in errors and "depth" not in errors and self.top_k > self.depth:
            errors["top_k"] = f"must not be larger than the depth of {self.depth}"
        if errors:
            raise ImproperProfile(errors)


# The least and the most of each number.
RANGES: Mapping[str, tuple[float, float]] = {
    "rrf_k": (1, 10_000),
    "both_legs_bonus": (0, 10),
    "top_k": (1, LARGEST_DEPTH),
    "depth": (1, LARGEST_DEPTH),
    "candidate_multiplier": (1, 50),
    "oversampling": (1, 50),
    "score_threshold": (-1000, 1000),
    "rerank_depth": (1, LARGEST_DEPTH),
    "rerank_weight": (0, 10),
    "neighbour_support": (0, 1),
    "rerank_timeout_seconds": (0.01, 60),
    "context_budget_tokens": (1, LARGEST_BUDGET_TOKENS),
    "context_neighbours": (0, 5),
    "context_blocks": (1, 8),
}
# What None stands for is said at ProfileSettings; for the threshold, that there is none.
OPTIONAL = frozenset({"weights", "score_threshold", "rerank_weight"})


def _is_within(value: object, low: float, high: float, *, optional: bool) -> bool:
    if value is None:
        return optional
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that differs between two profiles, with both values as :func:`to_json` has them."""

    name: str
    before: Any
    after: Any


def changes(before: ProfileSettings, after: ProfileSettings) -> list[SettingChange]:
    """The settings that differ, in the order of their declaration; a class of questions counts as one of its own."""
    first, second = _flat(before), _flat(after)
    return [SettingChange(name, first[name], second[name]) for name in first if first[name] != second[name]]


def _flat(profile: ProfileSettings) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in to_json(profile).items():
        if name == "class_weights":
            values |= {f"{name}.{query_class.value}": value[query_class.value] for query_class in QueryClass}
        else:
            values[name] = value
    return values


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
    if not isinstance(values, Mapping):
        raise ImproperProfile({"settings": "must be an object of settings by name"})
    known = {each.name for each in fields(ProfileSettings)}
    errors = {str(name): "is not a setting" for name in values if name not in known}
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name in known:
            try:
                read[name] = None if value is None and name in OPTIONAL else _READERS.get(name, _as_it_is)(value)
            except (TypeError, ValueError, OverflowError) as error:
                errors[name] = str(error)
    try:
        profile = ProfileSettings(**read)
    except ImproperProfile as error:
        errors |= error.errors
    if errors:
        raise ImproperProfile(errors)
    return profile


def _as_it_is(value: Any) -> Any:
    return value


def _method(value: Any) -> SearchMethod:
    if value not in [method.value for method in SearchMethod]:
        raise ValueError(f"must be one of {', '.join(SearchMethod)}, not {value!r}")
    return SearchMethod(value)


def _weights(value: Any) -> Weights:
    numbers = value if isinstance(value, Mapping) else {}
    if set(numbers) != {"vector", "lexical"} or not all(
        _is_within(number, 0, LARGEST_WEIGHT, optional=False) for number in numbers.values()
    ):
        raise ValueError(f"must be a number from 0 to {LARGEST_WEIGHT} for each of vector and lexical, not {value!r}")
    if not any(numbers.values()):
        raise ValueError("must not be 0 for both vector and lexical")
    return Weights(vector=float(numbers["vector"]), lexical=float(numbers["lexical"]))


def _class_weights(value: Any) -> dict[QueryClass, Weights]:
    if not isinstance(value, Mapping):
        raise TypeError(f"must be weights by class of question, not {value!r}")
    if unknown := [str(name) for name in value if name not in [each.value for each in QueryClass]]:
        raise ValueError(f"has no class of questions named {', '.join(unknown)}")
    read = {}
    for name, weights in value.items():
        try:
            read[QueryClass(name)] = _weights(weights)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return read


def _metadata_boosts(value: Any) -> tuple[MetadataBoost, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"must be a list of boosts, not {value!r}")
    return tuple(_metadata_boost(boost) for boost in value)


def _metadata_boost(value: Any) -> MetadataBoost:
    if not isinstance(value, Mapping) or set(value) != {"key", "value", "weight"}:
        raise ValueError(f"must hold a key, a value and a weight, not {value!r}")
    wanted = value["value"]
    if not isinstance(value["key"], str) or not isinstance(wanted, (str, int, float)) or wanted != wanted:
        raise TypeError(f"must have text as key, and text, a number, true or false as value, not {value!r}")
    return MetadataBoost(**value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or int(value) != value:
        raise ValueError(f"must be a whole number, not {value!r}")
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"must be true or false, not {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"must be a name, not {value!r}")
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    "method": _method,
    "weights": _weights,
    "class_weights": _class_weights,
    "metadata_boosts": _metadata_boosts,
    "fuzzy": _flag,
    "compounds": _flag,
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
