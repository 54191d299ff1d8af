"""One limit on questions, whether they come from the page or from a program."""

from __future__ import annotations

from typing import Any

from retrieval.api.callers import caller_of
from retrieval.api.throttling import CountedTogether


class QuestionThrottle(CountedTogether):
    """Counts by user, or by address for visitors, under the key that the API's own throttle uses."""

    scope = "ask"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return str(self.cache_format % {"scope": self.scope, "ident": caller_of(request)})
