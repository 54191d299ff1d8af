"""The addresses of the site, as its URL configuration has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLResolver, get_resolver


def addresses() -> Iterator[tuple[str, str, Any]]:
    """Name, route and view of each, such as `chat:stop` and `/answers/<uuid:answer_id>/stop/`; of those that are
    regular expressions, none."""

    def walk(patterns: list[Any], namespace: str, route: str) -> Iterator[tuple[str, str, Any]]:
        for each in patterns:
            part = str(each.pattern)
            if part.startswith("^") or "(?P" in part:
                continue
            if isinstance(each, URLResolver):
                inner = f"{namespace}{each.namespace}:" if each.namespace else namespace
                yield from walk(each.url_patterns, inner, route + part)
            else:
                yield f"{namespace}{each.name}", route + part, each.callback

    return walk(get_resolver().url_patterns, "", "/")


def filled(route: str, value: Callable[[str, str], object]) -> str:
    """The route with `value(converter, name)` in the place of each parameter."""
    return re.sub(r"<(?:(\w+):)?(\w+)>", lambda found: str(value(found[1] or "str", found[2])), route)
