"""Refusals that read alike: ``{"field": ["One sentence."]}`` for a field, ``{"detail": "One sentence."}`` otherwise."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError, OperationalError
from django.http import HttpRequest, HttpResponseBase
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from retrieval.api.parsers import BodyTooLarge
from retrieval.api.permissions import check_scopes
from retrieval.exceptions import FilesUnavailable, SearchBusy, SearchUnavailable
from retrieval.infrastructure import disk, outage
from retrieval.key_limits import ScopesByMethod

logger = logging.getLogger(__name__)


class Unavailable(APIException):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "The site cannot answer at the moment. Please try again in a minute."
    default_code = "unavailable"


class Busy(Unavailable):
    """``wait`` becomes the header `Retry-After`."""

    default_code = "busy"

    def __init__(self, detail: str, wait: int) -> None:
        super().__init__(detail)
        self.wait = wait


class InsufficientStorage(APIException):
    status_code = status.HTTP_507_INSUFFICIENT_STORAGE
    default_code = "insufficient_storage"


class ApiView(APIView):
    """A view that speaks UTF-8 and whose every refusal is JSON, those of Django below it included.

    ``key_scopes`` says which scopes let an API key call it. A method without any is called with the scope `admin` only.
    """

    key_scopes: ClassVar[ScopesByMethod] = {}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # The charset a caller declares may be one, such as hex, that Django accepts and cannot decode a form with.
        request.encoding = "utf-8"
        return super().dispatch(request, *args, **kwargs)

    def check_permissions(self, request: Request) -> None:
        # First the user's rights, so that a key without an account's right learns what its user would learn.
        super().check_permissions(request)
        check_scopes(request, self.key_scopes)

    def handle_exception(self, exc: Exception) -> Response:
        return super().handle_exception(self.for_the_caller(exc))

    def for_the_caller(self, error: Exception) -> Exception:
        """The refusal that the caller reads for an exception from below; one that has none as it is."""
        return _for_the_caller(error)


def _for_the_caller(error: Exception) -> Exception:
    if disk.is_disk_full(error):
        return InsufficientStorage(disk.message())
    match error:
        case SearchBusy():
            return Busy(str(error), error.retry_after_seconds)
        case SearchUnavailable():
            return Unavailable(str(error))
        case FilesUnavailable():
            return Unavailable(str(error))
        case OperationalError() if outage.is_node_lost(error):
            logger.error("A node of the database did not answer an API request.", exc_info=error)
            return Unavailable(outage.message())
        case OperationalError():
            logger.error("The database did not answer an API request.", exc_info=error)
            return Unavailable()
        case DataError():
            # Such as a NUL in a user name: what no field of ours let through, and the database refused.
            logger.warning("The database refused a value of an API request: %s", error)
            return ParseError("The request holds a value that cannot be stored or looked up.")
        case RequestDataTooBig():
            return BodyTooLarge()
        case SuspiciousOperation():
            return ParseError(str(error))
        case _:
            return error
