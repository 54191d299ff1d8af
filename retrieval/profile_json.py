"""A stored search profile: its settings as JSON, so that an old version can be searched with, compared and published
again. :func:`from_json` names every field that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from retrieval import dataclass_json
from retrieval.profile_settings import LARGEST_WEIGHT, SETTINGS, TYPES, ImproperProfile, ProfileSettings, is_within
from retrieval.types import MetadataBoost, QueryClass, RetrieverWeights, SearchMethod


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
    values: dict[str, Any] = dataclass_json.to_json(profile)
    return values


def from_json(values: Mapping[str, Any]) -> ProfileSettings:
    """The settings of a stored profile; what it does not name has its default, so that old versions stay readable.

    Raises: ImproperProfile for an unknown field or an impossible value.
    """
    if not isinstance(values, Mapping):
        raise ImproperProfile({"settings": "must be an object of settings by name"})
    errors = {str(name): "is not a setting" for name in values if name not in SETTINGS}
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name in SETTINGS:
            try:
                may_be_none = value is None and SETTINGS[name].when_empty
                read[name] = None if may_be_none else _READERS[TYPES[name]](value)
            except (TypeError, ValueError, OverflowError) as error:
                errors[name] = str(error)
    try:
        profile = ProfileSettings(**read)
    except ImproperProfile as error:
        errors |= error.errors
    if errors:
        raise ImproperProfile(errors)
    return profile


def _method(value: Any) -> SearchMethod:
    if value not in [method.value for method in SearchMethod]:
        raise ValueError(f"must be one of {', '.join(SearchMethod)}, not {value!r}")
    return SearchMethod(value)


def _weights(value: Any) -> RetrieverWeights:
    numbers = value if isinstance(value, Mapping) else {}
    if set(numbers) != {"vector", "lexical"} or not all(
        is_within(number, 0, LARGEST_WEIGHT) for number in numbers.values()
    ):
        raise ValueError(f"must be a number from 0 to {LARGEST_WEIGHT} for each of vector and lexical, not {value!r}")
    if not any(numbers.values()):
        raise ValueError("must not be 0 for both vector and lexical")
    return RetrieverWeights(vector=float(numbers["vector"]), lexical=float(numbers["lexical"]))


def _class_weights(value: Any) -> dict[QueryClass, RetrieverWeights]:
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


# By the name of the setting's type. A number is checked with the whole profile.
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "SearchMethod": _method,
    "RetrieverWeights": _weights,
    "Mapping[QueryClass, RetrieverWeights]": _class_weights,
    "tuple[MetadataBoost, ...]": _metadata_boosts,
    "bool": _flag,
    "str": _text,
    "int": _whole,
    "float": lambda value: value,
}
