"""System checks: a misspelt backend or an impossible number is found at start, not at the first question."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from retrieval import conf
from retrieval.types import SearchMethod


@register()
def backends_can_be_made(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    for build in (conf.embedder, conf.question_generator):
        try:
            build()
        except ImproperlyConfigured as error:
            messages.append(Error(str(error), id="retrieval.E001"))
    return messages


@register()
def numbers_make_sense(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if settings.RETRIEVAL_DEFAULT_METHOD not in set(SearchMethod):
        names = ", ".join(SearchMethod)
        messages.append(
            Error(
                f"RETRIEVAL_METHOD is {settings.RETRIEVAL_DEFAULT_METHOD!r}; it must be one of {names}.",
                id="retrieval.E002",
            )
        )
    if not 0 <= settings.BM25_B <= 1 or settings.BM25_K1 < 0:
        messages.append(
            Error("BM25_B must lie between 0 and 1, and BM25_K1 must not be negative.", id="retrieval.E003")
        )
    if not 1 <= settings.RETRIEVAL_TOP_K <= settings.RETRIEVAL_DEPTH:
        messages.append(Error("RETRIEVAL_TOP_K must lie between 1 and RETRIEVAL_DEPTH.", id="retrieval.E004"))
    return messages
