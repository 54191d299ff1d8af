from __future__ import annotations

import re
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.views import APIView

LARGEST_OFFSET = 10**9
_WHOLE_NUMBER = re.compile(r"[0-9]{1,30}", re.ASCII)


class Pagination(LimitOffsetPagination):
    """`limit` and `offset`; what is not a whole number is refused, and not taken for something else."""

    max_limit = 500

    def get_limit(self, request: Request) -> int:
        asked = _whole_number(request, "limit", smallest=1)
        return self.default_limit or 1 if asked is None else min(asked, self.max_limit)

    def get_offset(self, request: Request) -> int:
        return _whole_number(request, "offset", smallest=0) or 0

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        limit, offset = parameters
        limit["schema"] |= {"minimum": 1, "description": f"At most {self.max_limit} are returned."}
        offset["schema"] |= {"minimum": 0, "maximum": LARGEST_OFFSET}
        for parameter in parameters:
            parameter["allowEmptyValue"] = True
        return parameters


def _whole_number(request: Request, name: str, *, smallest: int) -> int | None:
    """None where it is not given. Raises: ValidationError."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if not _WHOLE_NUMBER.fullmatch(text) or int(text) < smallest or (name == "offset" and int(text) > LARGEST_OFFSET):
        raise ValidationError({name: [f"This must be a whole number from {smallest}."]})
    return int(text)
