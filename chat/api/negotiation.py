from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class WhateverIsAccepted(DefaultContentNegotiation):
    """JSON for refusals even where only `text/event-stream` is accepted, as the readers of streams ask for."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)
