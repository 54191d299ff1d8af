"""Build error responses for requests outside the API's views: JSON, OpenAI's form, or pages."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.views import defaults
from django_htmx.http import reswap, retarget
from rest_framework.exceptions import Throttled

from chat.api.openai_errors import choose_error_type
from chat.api.openai_errors import describe_error as openai_error
from core import database, disk
from core.exceptions import FilesUnavailable

logger = logging.getLogger(__name__)


def build_refusal(path: str, status: int, sentence: str, page: Callable[[], HttpResponse]) -> HttpResponse:
    if path.startswith(("/api/", "/mcp")):
        return JsonResponse({"detail": sentence}, status=status)
    if path.startswith("/v1/"):
        code = "insufficient_storage" if status == HTTPStatus.INSUFFICIENT_STORAGE else ""
        return JsonResponse(openai_error(sentence, kind=choose_error_type(status), code=code), status=status)
    return page()


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = _("The request was not understood: check its address and its headers.")
    return build_refusal(request.path_info, 400, sentence, lambda: defaults.bad_request(request, exception))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = _("You may not do this.")
    return build_refusal(request.path_info, 403, sentence, lambda: defaults.permission_denied(request, exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = _("There is nothing at this address: /api/docs/ lists what there is.")
    return build_refusal(request.path_info, 404, sentence, lambda: defaults.page_not_found(request, exception))


def server_error(request: HttpRequest) -> HttpResponse:
    if disk.is_disk_full(sys.exc_info()[1]):
        return disk_full(request)
    sentence = _("Something went wrong. The fault is ours, and it has been noted. Try again in a minute.")
    return build_refusal(request.path_info, 500, sentence, lambda: defaults.server_error(request))


class ErrorResponseMiddleware(MiddlewareMixin):
    """Turns errors that the site raises on purpose into responses, for pages and the admin."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, FilesUnavailable):
            return _refuse(request, 503, _("The files cannot be reached"), str(exception))
        if isinstance(exception, Throttled):
            response = _refuse(request, exception.status_code, _("Signing in is not possible now"), str(exception))
            response["Retry-After"] = str(exception.wait)  # type: ignore[attr-defined]  # the stubs lack it
            return response
        if database.is_node_lost(exception):
            logger.error("A node of the database did not answer: %s", exception)
            return _refuse(request, 503, _("The documents cannot be read"), database.get_outage_message())
        return disk_full(request) if disk.is_disk_full(exception) else None


def disk_full(request: HttpRequest) -> HttpResponse:
    disk.DISK_FULL.labels(reason="error").inc()
    return _refuse(request, HTTPStatus.INSUFFICIENT_STORAGE, _("The disk is full"), disk.get_disk_full_message())


def _refuse(request: HttpRequest, status: int, heading: str, sentence: str) -> HttpResponse:
    def render_page() -> HttpResponse:
        if not request.headers.get("HX-Request"):
            return render(request, "refusal.html", {"heading": heading, "message": sentence}, status=status)
        response = render(request, "chat/_question_error.html", {"error": sentence}, status=status)
        return reswap(retarget(response, "#question-error"), "outerHTML")

    return build_refusal(request.path_info, status, sentence, render_page)
