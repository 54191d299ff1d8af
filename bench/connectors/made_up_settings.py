from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TIME, _DAY, _WORD, _ADDRESS = "2026-01-01T00:00:00Z", "2026-01-01", "made-up", "https://example.example.com"
_OTHERS = ("2026-01-01T00:00:00.000Z", "2026-01-01 00:00:00", "example.example.com", "1", "us1")


def make_up_settings(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return made-up values for all required settings of a connector, and for those with a constant or default."""
    required = schema.get("required") or []
    made = {}
    for name, each in (schema.get("properties") or {}).items():
        if isinstance(each, dict) and (name in required or "const" in each or "default" in each):
            made[name] = _make_up_value(name, each)
    return made


def _make_up_value(name: str, schema: Mapping[str, Any]) -> Any:
    for fixed in ("const", "default"):
        if fixed in schema:
            return schema[fixed]
    if alternatives := schema.get("oneOf") or schema.get("anyOf"):
        # A sign-in by OAuth needs a person, so a token is preferred.
        plain = [each for each in alternatives if "refresh_token" not in str(each.get("required"))]
        return make_up_settings((plain or alternatives)[0])
    if "properties" in schema:
        return make_up_settings(schema)
    if values := schema.get("enum"):
        return values[0]
    kinds = schema.get("type")
    kind = next((each for each in kinds if each != "null"), "string") if isinstance(kinds, list) else kinds
    simple: dict[Any, Any] = {"integer": schema.get("minimum", 1), "number": 1, "boolean": False, "object": {}}
    if kind in simple:
        return simple[kind]
    if kind == "array":
        return [_make_up_value(name, schema.get("items") or {})]
    return _make_up_text(name, schema)


def _make_up_text(name: str, schema: Mapping[str, Any]) -> str:
    examples = [str(each) for each in schema.get("examples") or []]
    wanted = str(schema.get("pattern") or "")
    is_time = schema.get("format") in ("date-time", "date") or "date" in name
    is_address = "url" in name or schema.get("format") == "uri"
    guess = (_DAY if schema.get("format") == "date" else _TIME) if is_time else _ADDRESS if is_address else _WORD
    tried = [*examples, guess, _TIME, _DAY, _WORD, _ADDRESS, *_OTHERS]
    return next((each for each in tried if not wanted or re.search(wanted, each)), tried[0])
