"""An answer that was asked for: read, followed while it is written, stopped, rated."""

from __future__ import annotations

import re
import uuid

from asgiref.sync import async_to_sync
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.base import AskersView
from chat.api.events import event_stream, saved_answer_as_json
from chat.api.negotiation import WhateverIsAccepted
from chat.api.reach import answer_within_reach, own_answer
from chat.api.serializers import FeedbackSerializer, SavedAnswerSerializer
from chat.models import Feedback
from chat.streaming import streams
from retrieval.api.schema import EVENT

EVENT_ID = re.compile(r"[0-9]{1,9}-[0-9]{1,9}", re.ASCII)

_EVENT_ID = {"type": "string", "pattern": "^([0-9]{1,9}-[0-9]{1,9})?$"}


class NotFinished(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_detail = "This answer is still being written: rate it when it is complete."
    default_code = "not_finished"


class AnswerView(AskersView):
    @extend_schema(responses=SavedAnswerSerializer)
    def get(self, request: Request, answer_id: uuid.UUID) -> Response:
        """An earlier answer of the caller's, and whether it is complete."""
        return Response(saved_answer_as_json(answer_within_reach(request, answer_id), request.user))


class AnswerStreamView(AskersView):
    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        parameters=[
            OpenApiParameter("after", _EVENT_ID, description="The id of the last event read; empty: from the start."),
            OpenApiParameter(
                "Last-Event-ID", _EVENT_ID, OpenApiParameter.HEADER, description="The same, as browsers send it."
            ),
        ],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                EVENT, "The events of `ask` with `stream`. Tokens before a `reset` count no more."
            )
        },
    )
    def get(self, request: Request, answer_id: uuid.UUID) -> HttpResponseBase:
        """The rest of an answer's stream, from any of the site's processes. Nothing is generated a second time."""
        named = {"after": request.query_params.get("after"), "Last-Event-ID": request.headers.get("Last-Event-ID")}
        for name, event_id in named.items():
            if event_id and not EVENT_ID.fullmatch(event_id):
                raise ValidationError({name: ["This is not the id of an event, such as 1-12."]})
        after = named["after"] or named["Last-Event-ID"] or ""
        return event_stream(answer_within_reach(request, answer_id), request, after)


class StopView(AskersView):
    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, answer_id: uuid.UUID) -> Response:
        """End the writing of an answer: what has been written is kept. A finished answer stays as it is."""
        answer = own_answer(request, answer_id, or_permitted=True)
        async_to_sync(streams.stop)(answer.pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class FeedbackView(AskersView):
    @extend_schema(request=FeedbackSerializer, responses={200: FeedbackSerializer, 201: FeedbackSerializer})
    def post(self, request: Request, answer_id: uuid.UUID) -> Response:
        """Say whether an answer helped; saying it again replaces what was said."""
        answer = own_answer(request, answer_id)
        wanted = FeedbackSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        if not answer.is_finished:
            raise NotFinished
        feedback, created = Feedback.objects.update_or_create(answer=answer, defaults=dict(wanted.validated_data))
        code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        return Response(FeedbackSerializer(feedback).data, status=code)
