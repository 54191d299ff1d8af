"""The addresses of the site, as its URL configuration has them."""

import re

from django.urls import URLResolver, get_resolver


def addresses():
    """Return name, route and view of each address, such as `chat:stop` and `/answers/<uuid:answer_id>/stop/`.

    Regular expressions are left out.
    """

    def walk(patterns, namespace, route):
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


def filled(route, value):
    """Return the route with `value(converter, name)` in the place of each parameter."""
    return re.sub(r"<(?:(\w+):)?(\w+)>", lambda found: str(value(found[1] or "str", found[2])), route)
