"""Refusals in the form that OpenAI's clients understand: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from rest_framework import status
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated, Throttled, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from chat.api.base import AskersView
from chat.api.negotiation import WhateverIsAccepted
from chat.openai_api.authentication import BearerAuthentication
from chat.openai_api.serializers import OpenAIProblemSerializer

logger = logging.getLogger(__name__)

BROKEN = "Something went wrong. Please try again."


class ModelNotFound(APIException):
    status_code = status.HTTP_404_NOT_FOUND
    default_code = "model_not_found"


class OpenAIView(AskersView):
    """A view whose every refusal has OpenAI's form."""

    problem_serializer = OpenAIProblemSerializer
    authentication_classes = [BearerAuthentication]
    content_negotiation_class = WhateverIsAccepted

    def get_exception_handler(self) -> Callable[[Exception, Any], Response]:
        return respond_to


def respond_to(exception: Exception, context: Any) -> Response:
    response = exception_handler(exception, context)
    if response is None:
        logger.error("A request for a completion broke.", exc_info=exception)
        return Response(error(BROKEN, kind="server_error"), status=status.HTTP_500_INTERNAL_SERVER_ERROR)
    param, message = _first(exception.detail) if isinstance(exception, ValidationError) else ("", "")
    response.data = error(
        message or str(getattr(exception, "detail", exception)),
        kind=kind_of(response.status_code),
        param="model" if isinstance(exception, ModelNotFound) else param,
        code=_code(exception),
    )
    return response


def error(message: str, *, kind: str, param: str = "", code: str = "") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code or None}}


def kind_of(status_code: int) -> str:
    if status_code == status.HTTP_429_TOO_MANY_REQUESTS:
        return "rate_limit_error"
    return "server_error" if status_code >= status.HTTP_500_INTERNAL_SERVER_ERROR else "invalid_request_error"


def _code(exception: Exception) -> str:
    match exception:
        case AuthenticationFailed() | NotAuthenticated():
            return "invalid_api_key"
        case Throttled():
            return "rate_limit_exceeded"
        case ValidationError():
            return _first_code(exception.get_codes())
        case APIException():
            return str(exception.get_codes())
    return ""


def _first(detail: Any, path: str = "") -> tuple[str, str]:
    """The first field that is at fault, such as ``messages[1].content``, and its sentence."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            # Refusals of a list's members come by position.
            step = f"[{name}]" if isinstance(name, int) else f".{name}" if path else str(name)
            return _first(inner, path if name == "non_field_errors" else path + step)
    if isinstance(detail, list):
        for position, inner in enumerate(detail):
            if isinstance(inner, dict):
                if inner:
                    return _first(inner, f"{path}[{position}]")
            else:
                return path, str(inner)
    return path, str(detail)


def _first_code(codes: Any) -> str:
    while not isinstance(codes, str):
        inner_codes = codes.values() if isinstance(codes, dict) else codes
        codes = next((inner for inner in inner_codes if inner), "")
    return codes
