"""What a caller is told when the disk is full, wherever that was noticed: 507, in the form that the caller reads."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults

from chat.openai_api.errors import error as openai_error
from retrieval import disk

INSUFFICIENT_STORAGE = 507


class DiskFullMiddleware(MiddlewareMixin):
    """Answers for pages and the admin; API views do it themselves."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return refusal(request) if disk.is_disk_full(exception) else None


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's page for errors that no view answered for, such as a session or an upload that could not be kept."""
    if disk.is_disk_full(sys.exc_info()[1]):
        return refusal(request)
    return defaults.server_error(request)


def refusal(request: HttpRequest) -> HttpResponse:
    disk.DISK_FULL.labels(reason="error").inc()
    message = disk.message()
    if request.path.startswith("/v1/"):
        told = openai_error(message, kind="server_error", code="insufficient_storage")
        return JsonResponse(told, status=INSUFFICIENT_STORAGE)
    if request.path.startswith("/api/"):
        return JsonResponse({"detail": message}, status=INSUFFICIENT_STORAGE)
    if request.headers.get("HX-Request"):
        response = render(request, "chat/_question_error.html", {"error": message}, status=INSUFFICIENT_STORAGE)
        response["HX-Retarget"] = "#question-error"
        response["HX-Reswap"] = "outerHTML"
        return response
    return render(request, "507.html", {"message": message}, status=INSUFFICIENT_STORAGE)
