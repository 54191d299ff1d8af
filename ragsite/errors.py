"""Refusals by Django itself, in the form that the caller reads: JSON under /api/, OpenAI's under /v1/, else a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views import defaults

from chat.openai_api.errors import error as openai_error
from chat.openai_api.errors import kind_of


def problem(path: str, status: int, sentence: str) -> dict[str, Any] | None:
    """The JSON body of a refusal at ``path``; None where people read pages."""
    if path.startswith("/api/"):
        return {"detail": sentence}
    if path.startswith("/v1/"):
        return openai_error(sentence, kind=kind_of(status))
    return None


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = _("The request was not understood: check its address and its headers.")
    return _refusal(request, 400, sentence, lambda: defaults.bad_request(request, exception))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _refusal(request, 403, _("You may not do this."), lambda: defaults.permission_denied(request, exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = _("There is nothing at this address: /api/docs/ lists what there is.")
    return _refusal(request, 404, sentence, lambda: defaults.page_not_found(request, exception))


def server_error(request: HttpRequest) -> HttpResponse:
    sentence = _("Something went wrong. The fault is ours, and it has been noted. Try again in a minute.")
    return _refusal(request, 500, sentence, lambda: defaults.server_error(request))


def _refusal(request: HttpRequest, status: int, sentence: str, page: Callable[[], HttpResponse]) -> HttpResponse:
    body = problem(request.path_info, status, sentence)
    return page() if body is None else JsonResponse(body, status=status)
