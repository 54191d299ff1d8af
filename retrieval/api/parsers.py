from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.conf import settings
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer


class BodyTooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "body_too_large"

    def __init__(self) -> None:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
        super().__init__(f"The request is larger than {limit} MiB, not counting files.")


class JSONParser(BaseParser):
    """JSON in UTF-8, no larger than DATA_UPLOAD_MAX_MEMORY_SIZE (which the framework's own does not look at)."""

    media_type = "application/json"
    renderer_class = JSONRenderer

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge
        try:
            return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        except UnicodeDecodeError:
            raise ParseError("The request body is not JSON in UTF-8.") from None
        except RecursionError:
            raise ParseError("The request body nests too deeply.") from None
        except ValueError as error:
            raise ParseError(f"The request body is not valid JSON: {error}.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
