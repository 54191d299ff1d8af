"""System checks: a misspelt backend or an impossible number is found at start, not at the first question."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from retrieval import conf
from retrieval.documents import sandbox
from retrieval.index.closeness import calibration_of, missing_calibration
from retrieval.profile_settings import NO_RERANKER, ImproperProfile
from retrieval.search.profiles import built_in_profile
from retrieval.types import SearchMethod


@register()
def backends_can_be_made(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    for build in (conf.new_embedder, conf.question_generator, conf.reformulator):
        try:
            build()
        except ImproperlyConfigured as error:
            messages.append(Error(str(error), id="retrieval.E001"))
    return messages


@register()
def embedder_is_calibrated(**_: Any) -> list[CheckMessage]:
    """The database is asked only where the embedder is not a built-in one."""
    try:
        name = conf.new_embedder().name
        if calibration_of(name) is None:
            return [checks.Warning(missing_calibration(name), id="retrieval.W001")]
    except ImproperlyConfigured:
        pass  # `backends_can_be_made` says so
    return []


@register()
def rerankers_can_be_made(**_: Any) -> list[CheckMessage]:
    """Also of those that nothing uses yet: an admin may choose any of them in a profile."""
    messages: list[CheckMessage] = []
    if NO_RERANKER in settings.RERANKERS:
        messages.append(
            Error(f"RERANKERS has a {NO_RERANKER!r}, which is the name of no reranker.", id="retrieval.E005")
        )
    names = [NO_RERANKER, *settings.RERANKERS]
    if settings.RETRIEVAL_RERANKER not in names:
        messages.append(
            Error(
                f"RETRIEVAL_RERANKER is {settings.RETRIEVAL_RERANKER!r}; it must be one of {', '.join(names)}.",
                hint="`.env.example` says what each of them needs.",
                id="retrieval.E005",
            )
        )
    for name in settings.RERANKERS:
        try:
            conf.reranker(name)
        except ImproperlyConfigured as error:
            messages.append(Error(f"Reranker {name}: {error}", id="retrieval.E006"))
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
    if not messages:
        try:
            built_in_profile()
        except ImproperProfile as error:
            messages.append(Error(f"The settings make no search profile: {error}", id="retrieval.E004"))
    return messages


@register()
def sandbox_is_whole(**_: Any) -> list[CheckMessage]:
    if not (missing := sandbox.state().missing_guards):
        return []
    read = "no file is read (SANDBOX_REQUIRED)" if settings.SANDBOX_REQUIRED else "files are read without them"
    message = f"DEGRADED: the sandbox lacks these guards on this machine: {', '.join(missing)}; {read}."
    return [checks.Warning(message, hint="docs/security.md, Files.", id="retrieval.W002")]
