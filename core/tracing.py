"""Spans of OpenTelemetry, where the site has switched it on; otherwise nothing happens. PURE.

`ragsite.operations.telemetry` switches it on.

An attribute holds a name or a number, never a text of a document, a question or an answer. Nor does a span hold an
error's message, which may quote one; its class is enough.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

Attribute = str | int | float | bool


class Spans(Protocol):
    """``begin`` makes a child of the current span; ``enter`` makes it the current one, and returns what undoes that."""

    def begin(self, name: str, attributes: dict[str, Attribute]) -> Any: ...

    def enter(self, span: Any) -> Any: ...

    def leave(self, token: Any) -> None: ...

    def end(self, span: Any, failure: str) -> None: ...

    def annotate(self, attributes: dict[str, Attribute]) -> None: ...


_spans: Spans | None = None


def use(spans: Spans | None) -> None:
    """From now on; None: nothing happens again."""
    global _spans
    _spans = spans


@contextmanager
def span(name: str, *, is_current: bool = True, **attributes: Attribute) -> Iterator[None]:
    """A span around a block, or a function that it decorates.

    An asynchronous generator takes ``is_current=False``: whoever closes it may be in another context.
    """
    spans = _spans
    if spans is None:
        yield
        return
    begun = spans.begin(name, attributes)
    token = spans.enter(begun) if is_current else None
    failure = ""
    try:
        yield
    except (GeneratorExit, CancelledError):
        raise
    except BaseException as error:
        failure = type(error).__name__
        raise
    finally:
        if token is not None:
            spans.leave(token)
        spans.end(begun, failure)


def annotate(**attributes: Attribute) -> None:
    """Adds to the current span what is known only at its end."""
    if _spans is not None:
        _spans.annotate(attributes)
