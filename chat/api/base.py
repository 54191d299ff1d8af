"""What the API's views of questions and answers share."""

from __future__ import annotations

from rest_framework.exceptions import Throttled
from rest_framework.response import Response

from chat.exceptions import BudgetSpent, SiteBusy
from retrieval.api.errors import ApiView, Busy
from retrieval.api.parsers import JSONParser
from retrieval.api.permissions import MayAsk
from retrieval.rights.key_limits import Scope, on_every_method


class AskersView(ApiView):
    """For whoever may ask; an API key needs the scope `ask`."""

    parser_classes = [JSONParser]
    permission_classes = [MayAsk]
    key_scopes = on_every_method(Scope.ASK)

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, SiteBusy):
            return super().handle_exception(Busy(str(exc), exc.retry_after_seconds))
        if isinstance(exc, BudgetSpent):
            return super().handle_exception(Throttled(exc.retry_after_seconds, str(exc)))
        return super().handle_exception(exc)
