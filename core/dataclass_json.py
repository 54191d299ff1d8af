"""Convert dataclasses to JSON and back. Imports no Django.

Fields may contain JSON's own types, enums of texts, tuples, mappings, dataclasses and None.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, TypeVar, Union, get_args, get_origin

from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

T = TypeVar("T")

# Metadata of a field that is left out of the JSON if it has its default value.
OMIT_DEFAULT: Mapping[str, object] = {"omit_default": True}


def json_name(name: str) -> Mapping[str, object]:
    return {"name": name}


def to_json(value: Any) -> Any:
    return _converter.unstructure(value)


def from_json(kind: type[T], stored: Any) -> T:
    """Return the object from JSON that :func:`to_json` wrote.

    Missing fields get their defaults; unknown fields are ignored. Raises: KeyError, TypeError or ValueError for values
    of a wrong type.
    """
    return _converter.structure(stored, kind)


# If detailed_validation were on, cattrs would raise groups of errors.
_converter = Converter(detailed_validation=False, unstruct_collection_overrides={tuple: list})


def _describe_fields(kind: Any) -> dict[str, Any]:
    return {
        each.name: override(rename=each.metadata.get("name"), omit_if_default=each.metadata.get("omit_default", False))
        for each in fields(kind)
    }


@_converter.register_unstructure_hook_factory(is_dataclass)
def _make_writer(kind: Any) -> Callable[[Any], Any]:
    return make_dict_unstructure_fn(kind, _converter, **_describe_fields(kind))


@_converter.register_structure_hook_factory(is_dataclass)
def _make_reader(kind: Any) -> Callable[[Any, Any], Any]:
    return make_dict_structure_fn(kind, _converter, _cattrs_detailed_validation=False, **_describe_fields(kind))


def _is_union_of_json_types(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType) and set(get_args(kind)) <= {str, int, float, bool}


def _read_text(stored: Any, kind: Any) -> Any:
    return stored if kind is str else kind(stored)


# cattrs would leave a StrEnum unchanged, because it is a str.
_converter.register_unstructure_hook(StrEnum, lambda member: member.value)
# cattrs would convert a value of a wrong type instead of raising an error.
_converter.register_structure_hook(str, _read_text)
_converter.register_structure_hook(float, lambda stored, _: stored)
_converter.register_structure_hook_func(_is_union_of_json_types, lambda stored, _: stored)
