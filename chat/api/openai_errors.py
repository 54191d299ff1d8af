from __future__ import annotations

import logging
from typing import Any

from rest_framework import serializers, status
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    NotAuthenticated,
    Throttled,
    ValidationError,
)
from rest_framework.response import Response
from rest_framework.views import exception_handler

from chat.api.openai_types import ErrorBody

logger = logging.getLogger(__name__)


BROKEN = "Something went wrong. Please try again."


class ModelNotFound(APIException):
    status_code = status.HTTP_404_NOT_FOUND
    default_code = "model_not_found"

    def __init__(self, model: str, why: str = "There is no model named {!r}: GET /v1/models lists them.") -> None:
        super().__init__(why.format(model[:200]))


class OpenAIProblemSerializer(serializers.Serializer[Any]):
    error = serializers.DictField(help_text="`message`, `type`, `param` and `code`.")


def build_error_response(exception: Exception, context: Any) -> Response:
    response = exception_handler(exception, context)
    if response is None:
        logger.error("A request of OpenAI's protocol broke.", exc_info=exception)
        return Response(describe_error(BROKEN, kind="server_error"), status=status.HTTP_500_INTERNAL_SERVER_ERROR)
    param, message, code = "", str(getattr(exception, "detail", exception)), ""
    match exception:
        case AuthenticationFailed() | NotAuthenticated():
            code = "invalid_api_key"
        case Throttled():
            code = "rate_limit_exceeded"
        case ValidationError():
            param, found = _find_first_error(exception.detail)
            message, code = f"{param}: {found}" if param else str(found), getattr(found, "code", "")
        case APIException():
            code = str(exception.get_codes())
            param = "model" if isinstance(exception, ModelNotFound) else ""
    response.data = describe_error(message, kind=choose_error_type(response.status_code), param=param, code=code)
    return response


def describe_error(message: str, *, kind: str, param: str = "", code: str = "") -> ErrorBody:
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code or None}}


def choose_error_type(status_code: int) -> str:
    if status_code == status.HTTP_429_TOO_MANY_REQUESTS:
        return "rate_limit_error"
    return "server_error" if status_code >= status.HTTP_500_INTERNAL_SERVER_ERROR else "invalid_request_error"


def _find_first_error(detail: Any, path: str = "") -> tuple[str, Any]:
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        step = f"[{name}]" if isinstance(name, int) else f".{name}" if path else str(name)
        return _find_first_error(inner, path if name == "non_field_errors" else path + step)
    if isinstance(detail, list):
        position = next(at for at, inner in enumerate(detail) if inner)
        inner = detail[position]
        return _find_first_error(inner, f"{path}[{position}]") if isinstance(inner, dict) else (path, inner)
    return path, detail
