from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.db import connection
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat import asking
from chat.api.base import AskersView
from chat.api.events import answer_as_json, event_stream
from chat.api.negotiation import WhateverIsAccepted
from chat.api.reach import visitor_behind
from chat.api.serializers import AnswerSerializer, AskRequestSerializer
from chat.conversations import rights
from chat.models import Answer
from chat.streaming import readers, saving, streams
from retrieval.api.callers import caller_of
from retrieval.api.errors import InsufficientStorage, Unavailable
from retrieval.api.schema import EVENT


class AskView(AskersView):
    content_negotiation_class = WhateverIsAccepted
    throttle_scope = "ask"

    @extend_schema(
        request=AskRequestSerializer,
        responses={
            (200, "application/json"): AnswerSerializer,
            (200, "text/event-stream"): OpenApiResponse(
                EVENT, "With `stream`: the events `queued`, `searched`, `token`, and `completed` or `failed`."
            ),
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """A cited answer to a question, from the documents that the caller may read."""
        wanted = AskRequestSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        asked = wanted.validated_data
        try:
            answer = asking.begin(
                asked["question"],
                user=request.user,
                visitor=visitor_behind(request),
                caller=caller_of(request),
                conversation_id=asked.get("conversation"),
                collection=asked.get("collection") or "",
                method=asked.get("method") or "",
                anew=asked["anew"],
            )
        except asking.InvalidQuestion as error:
            raise ValidationError({error.field: [str(error)]}) from error
        if asked["stream"]:
            return event_stream(answer, request)
        return Response(answer_as_json(finish_answer(answer, request.user)))


def finish_answer(answer: Answer, user: Any) -> Answer:
    """The answer, written to its end and saved.

    When the caller hangs up, Django cancels the request, asgiref what runs for it, and with that the writing.

    Raises: Unavailable with the sentence that it failed with; InsufficientStorage when it could not be saved, because
    the disk is full; PermissionDenied when ``user`` lost the right to its sources meanwhile.
    """
    # Nothing is asked of this connection while the answer is being written.
    if not connection.in_atomic_block:
        connection.close()
    last = async_to_sync(streams.finish)(answer.pk, answer)
    if last.payload.get("code") == saving.DISK_FULL:
        raise InsufficientStorage(last.payload["message"])
    answer.refresh_from_db()
    if answer.status == Answer.Status.FAILED or not answer.is_finished:
        raise Unavailable(answer.error or last.payload.get("message"))
    if not readers.may_still_read(answer, user):
        raise PermissionDenied(rights.withheld_message())
    return answer
