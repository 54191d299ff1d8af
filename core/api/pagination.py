from __future__ import annotations

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.serializers import IntegerField
from rest_framework.views import APIView

LARGEST = 10**9


class Pagination(LimitOffsetPagination):
    max_limit = 500

    def get_limit(self, request: Request) -> int:
        return min(_read_whole_number(request, "limit", smallest=1) or self.default_limit or 1, self.max_limit)

    def get_offset(self, request: Request) -> int:
        return _read_whole_number(request, "offset", smallest=0) or 0

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, object]]:
        limit, offset = super().get_schema_operation_parameters(view)
        limit["schema"] |= {"minimum": 1, "maximum": LARGEST, "description": f"At most {self.max_limit} are returned."}
        offset["schema"] |= {"minimum": 0, "maximum": LARGEST}
        return [parameter | {"allowEmptyValue": True} for parameter in (limit, offset)]


def _read_whole_number(request: Request, name: str, *, smallest: int) -> int | None:
    if not (text := request.query_params.get(name)):
        return None
    try:
        return int(IntegerField(min_value=smallest, max_value=LARGEST).run_validation(text))
    except ValidationError as error:
        raise ValidationError({name: error.detail}) from error
