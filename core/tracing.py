"""Record OpenTelemetry spans, if `ragsite.operations.telemetry` turns tracing on.

Attributes are names, numbers, and classes of errors. They never contain text of documents, questions or answers.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

Attribute = str | int | float | bool


class Spans(Protocol):
    """The interface of a backend that records tracing spans.

    ``begin`` starts a child of the current span. ``enter`` makes it current, and returns a token for ``leave``.
    """

    def begin(self, name: str, attributes: dict[str, Attribute]) -> Any: ...

    def enter(self, span: Any) -> Any: ...

    def leave(self, token: Any) -> None: ...

    def end(self, span: Any, failure: str) -> None: ...

    def annotate(self, attributes: dict[str, Attribute]) -> None: ...


_spans: Spans | None = None


def set_span_backend(spans: Spans | None) -> None:
    global _spans
    _spans = spans


@contextmanager
def span(name: str, *, is_current: bool = True, **attributes: Attribute) -> Iterator[None]:
    """Run a block or a decorated function in a span.

    For an asynchronous generator pass ``is_current=False``, because it may be closed in another context.
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


def annotate_span(**attributes: Attribute) -> None:
    if _spans is not None:
        _spans.annotate(attributes)
