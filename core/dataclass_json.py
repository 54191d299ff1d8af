"""Dataclasses as JSON and back. Imports no Django.

Fields contain JSON's own types, enums, tuples, mappings, dataclasses and None.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable, Mapping
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_JSON_TYPES = frozenset({str, int, float, bool, type(None)})
_NOTHING = object()


# Metadata of a field that is omitted while it has its default.
OMIT_DEFAULT: Mapping[str, object] = {"omit_default": True}


def json_name(name: str) -> Mapping[str, object]:
    return {"name": name}


def to_json(value: Any) -> Any:
    kind = type(value)
    if kind in _JSON_TYPES:
        return value
    if (written := _written_fields(kind)) is not None:  # type: ignore[arg-type]  # mypy takes no class for hashable
        return {
            name: content if type(content) in _JSON_TYPES else to_json(content)
            for own, name, omitted in written
            if (content := getattr(value, own)) != omitted
        }
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(content) for key, content in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(content) for content in value]
    return value.value if isinstance(value, Enum) else value


@functools.cache
def _written_fields(kind: Hashable) -> tuple[tuple[str, str, object], ...] | None:
    """Return name, JSON name and omitted value of each field; None for other types.

    Cached: the explanation of a search has hundreds of small dataclasses.
    """
    if not isinstance(kind, type) or not is_dataclass(kind):
        return None
    return tuple(
        (each.name, _find_json_name(each), each.default if each.metadata.get("omit_default") else _NOTHING)
        for each in fields(kind)
    )


def from_json(kind: type[T], stored: Any) -> T:
    """Return what :func:`to_json` wrote; missing fields get defaults, unknown fields are ignored.

    Raises: KeyError, TypeError or ValueError for a value that does not fit.
    """
    read: T = _read(kind, stored)
    return read


def _read(kind: Any, stored: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if stored is None else _read(next(each for each in arguments if each is not type(None)), stored)
    if origin is tuple:
        return tuple(_read(arguments[0], content) for content in stored)
    if origin is not None and issubclass(origin, Mapping):
        return {_read(arguments[0], key): _read(arguments[1], content) for key, content in stored.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints, known = _hints(kind), {each.name: _find_json_name(each) for each in fields(kind)}
        return kind(**{own: _read(hints[own], stored[name]) for own, name in known.items() if name in stored})
    return kind(stored) if isinstance(kind, type) and issubclass(kind, (Enum, int)) else stored


_hints = functools.cache(get_type_hints)


def _find_json_name(each: Field[Any]) -> str:
    return each.metadata.get("name") or each.name
