"""Build the API's error responses: ``{"field": ["A sentence."]}`` for a field, else ``{"detail": "A sentence."}``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import IO, Any, ClassVar

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError, OperationalError
from django.http import Http404, HttpRequest, HttpResponseBase
from rest_framework import parsers, status
from rest_framework.exceptions import APIException, NotFound, ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core import database, disk
from core.api.permissions import check_scopes
from core.exceptions import ServiceUnavailable
from core.key_limits import KeyScope

logger = logging.getLogger(__name__)


class BodyTooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "body_too_large"

    def __init__(self) -> None:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
        super().__init__(f"The request is larger than {limit} MiB, not counting files.")


class JSONParser(parsers.JSONParser):
    """A parser of JSON in UTF-8 that refuses more than DATA_UPLOAD_MAX_MEMORY_SIZE.

    PowerShell and .NET write a byte order mark before the JSON.
    """

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge
        try:
            return super().parse(BytesIO(body), media_type, {"encoding": "utf-8-sig"})
        except RecursionError:
            raise ParseError("The request body nests too deeply.") from None


class AlwaysJSON(DefaultContentNegotiation):
    """A renderer that sends JSON whatever the client accepts, because event-stream clients also need errors."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)


class SiteUnavailable(APIException):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "The site cannot answer at the moment. Please try again in a minute."
    default_code = "unavailable"


class SiteBusyProblem(SiteUnavailable):
    default_code = "busy"

    def __init__(self, detail: str, wait: int) -> None:
        super().__init__(detail)
        self.wait = wait


class InsufficientStorage(APIException):
    status_code = status.HTTP_507_INSUFFICIENT_STORAGE
    default_code = "insufficient_storage"


class ApiView(APIView):
    """Base class of API views. It sends all errors as JSON, including Django's.

    A request with an API key is allowed if the key has the scope `admin`, or one of the scopes in ``key_scopes``. If
    ``writing_scopes`` is not empty, a request that changes something needs one of these or `admin` instead. Keys that
    are limited to one source are refused, unless ``takes_source_keys`` is true.
    """

    key_scopes: ClassVar[tuple[KeyScope, ...]] = ()
    writing_scopes: ClassVar[tuple[KeyScope, ...]] = ()
    takes_source_keys: ClassVar[bool] = False
    content_negotiation_class = AlwaysJSON

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # A form may declare an encoding that is not for text, such as hex.
        request.encoding = "utf-8"
        return super().dispatch(request, *args, **kwargs)

    def check_permissions(self, request: Request) -> None:
        # A key must not allow more than its user's permissions do.
        super().check_permissions(request)
        is_reading = request.method in SAFE_METHODS or not self.writing_scopes
        scopes = self.key_scopes if is_reading else self.writing_scopes
        check_scopes(request, scopes, takes_source_keys=self.takes_source_keys)

    def handle_exception(self, exc: Exception) -> Response:
        return super().handle_exception(self.convert_error(exc))

    def convert_error(self, error: Exception) -> Exception:
        """Return the API exception for an internal exception. Other exceptions are returned unchanged."""
        if disk.is_disk_full(error):
            return InsufficientStorage(disk.get_disk_full_message())
        match error:
            case ServiceUnavailable() if error.retry_after_seconds is not None:
                return SiteBusyProblem(str(error), error.retry_after_seconds)
            case ServiceUnavailable():
                return SiteUnavailable(str(error))
            case OperationalError() if database.is_node_lost(error):
                logger.error("A node of the database did not answer an API request.", exc_info=error)
                return SiteUnavailable(database.get_outage_message())
            case OperationalError():
                logger.error("The database did not answer an API request.", exc_info=error)
                return SiteUnavailable()
            case DataError():
                # The API accepts some values that the database refuses, such as a text with NUL.
                logger.warning("The database refused a value of an API request: %s", error)
                return ParseError("The request holds a value that cannot be stored or looked up.")
            case RequestDataTooBig():
                return BodyTooLarge()
            case Http404():
                return NotFound("This does not exist, or is not yours.")
            case SuspiciousOperation():
                return ParseError(str(error))
            case _:
                return error
