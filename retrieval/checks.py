"""Django system checks that report an unusable backend when the site starts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from retrieval import backends
from retrieval.documents import sandbox
from retrieval.exceptions import EmbeddingFailed
from retrieval.index import embedder_choice
from retrieval.index.closeness import describe_missing_calibration, find_calibration
from retrieval.profile_settings import NO_RERANKER


@register()
def check_backends(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    for build in (
        embedder_choice.get_embedder_for_new_vectors,
        backends.get_question_generator,
        backends.get_reformulator,
    ):
        try:
            build()
        except ImproperlyConfigured as error:
            messages.append(Error(str(error), id="retrieval.E001"))
        except EmbeddingFailed:
            pass  # Before the first migration, there is no table of embedders.
    return messages


@register()
def check_calibration(**_: Any) -> list[CheckMessage]:
    try:
        name = embedder_choice.get_embedder_for_new_vectors().name
        if find_calibration(name) is None:
            return [checks.Warning(describe_missing_calibration(name), id="retrieval.W001")]
    except (ImproperlyConfigured, EmbeddingFailed):
        pass  # `check_backends` reports this error.
    return []


@register()
def check_rerankers(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if NO_RERANKER in settings.RERANKERS:
        messages.append(
            Error(f"RERANKERS has a {NO_RERANKER!r}, which is the name of no reranker.", id="retrieval.E005")
        )
    for name in settings.RERANKERS:
        try:
            backends.get_reranker(name)
        except ImproperlyConfigured as error:
            messages.append(Error(f"Reranker {name}: {error}", id="retrieval.E006"))
    return messages


@register()
def check_sandbox(**_: Any) -> list[CheckMessage]:
    if not (missing := sandbox.read_sandbox_state().missing_guards):
        return []
    read = "no file is read (SANDBOX_REQUIRED)" if settings.SANDBOX_REQUIRED else "files are read without them"
    message = f"DEGRADED: the sandbox lacks these guards on this machine: {', '.join(missing)}; {read}."
    return [checks.Warning(message, hint="docs/security.md, Files.", id="retrieval.W002")]
