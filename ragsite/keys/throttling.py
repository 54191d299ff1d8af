from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from ragsite.models import ApiKey
from retrieval.api.throttling import CountedTogether


class KeyRateThrottle(CountedTogether):
    """The rate of the key that a request came with, beside the limits that hold for every account."""

    cache_format = "throttle_key_%(ident)s"

    def __init__(self) -> None:
        """The rate is known when the request is."""

    def allow_request(self, request: Request, view: Any) -> bool:
        key = request.auth
        if not isinstance(key, ApiKey) or not key.rate:
            return True
        self.rate = key.rate
        self.num_requests, self.duration = self.parse_rate(key.rate)
        return super().allow_request(request, view)

    def get_cache_key(self, request: Request, view: Any) -> str:
        assert isinstance(request.auth, ApiKey)
        return self.cache_format % {"ident": request.auth.pk}
