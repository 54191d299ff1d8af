from __future__ import annotations

import uuid
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import APIException, NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat import asking, payloads, streams
from chat.api.events import answer_events, with_answer
from chat.api.serializers import (
    AnswerSerializer,
    AskRequestSerializer,
    FeedbackSerializer,
    ProblemSerializer,
    SavedAnswerSerializer,
)
from chat.models import Answer, Feedback
from retrieval.api.errors import ApiView, Unavailable
from retrieval.api.parsers import JSONParser
from retrieval.api.permissions import MayAsk


class NotFinished(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_detail = "This answer is still being written: rate it when it is complete."
    default_code = "not_finished"


def visitor_behind(request: Request) -> str:
    """The browser behind an anonymous request; empty for a user, and for a program that keeps no cookies.

    A session is not begun for such a program: each of its calls would leave one behind.
    """
    if request.user.is_authenticated or settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return ""
    return asking.visitor_of(request._request)


def answers_within_reach(request: Request) -> QuerySet[Answer]:
    """The caller's own answers, and those that belong to nobody: who knows the random id of one was given it."""
    own = asking.answers_readable_by(request.user, visitor_behind(request))
    nobodys = Answer.objects.filter(conversation__owner=None, conversation__visitor="")
    return own | nobodys


class AskView(ApiView):
    parser_classes = [JSONParser]
    permission_classes = [MayAsk]
    throttle_scope = "ask"

    @extend_schema(
        request=AskRequestSerializer,
        responses={
            (200, "application/json"): AnswerSerializer,
            (200, "text/event-stream"): OpenApiResponse(
                OpenApiTypes.STR, "With `stream`: the events `searched`, `token`, and `completed` or `failed`."
            ),
            503: ProblemSerializer,
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
                conversation_id=asked.get("conversation"),
                collection=asked.get("collection") or "",
                method=asked.get("method") or "",
            )
        except asking.InvalidQuestion as error:
            raise ValidationError({error.field: [str(error)]}) from error
        if asked["stream"]:
            return _stream(answer)
        # Nothing is asked of this connection while the answer is being written.
        if not connection.in_atomic_block:
            connection.close()
        async_to_sync(streams.finish)(answer.pk)
        answer.refresh_from_db()
        if answer.status == Answer.Status.FAILED:
            raise Unavailable(answer.error)
        return Response(answer_as_json(answer))


def _stream(answer: Answer) -> StreamingHttpResponse:
    response = StreamingHttpResponse(answer_events(answer.pk), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache, no-transform"
    # Proxies of the nginx kind would hold the events back.
    response["X-Accel-Buffering"] = "no"
    return response


class AnswerView(ApiView):
    permission_classes = [MayAsk]

    @extend_schema(responses=SavedAnswerSerializer)
    def get(self, request: Request, answer_id: uuid.UUID) -> Response:
        """An earlier answer of the caller's, and whether it is complete."""
        answer = _answer(request, answer_id)
        state = {"question": answer.question, "status": answer.status, "error": answer.error}
        return Response({**answer_as_json(answer), **state})


class FeedbackView(ApiView):
    parser_classes = [JSONParser]
    permission_classes = [MayAsk]

    @extend_schema(request=FeedbackSerializer, responses={200: FeedbackSerializer, 201: FeedbackSerializer})
    def post(self, request: Request, answer_id: uuid.UUID) -> Response:
        """Say whether an answer helped; saying it again replaces what was said."""
        answer = _answer(request, answer_id)
        wanted = FeedbackSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        if not answer.is_finished:
            raise NotFinished
        feedback, created = Feedback.objects.update_or_create(answer=answer, defaults=dict(wanted.validated_data))
        code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        return Response(FeedbackSerializer(feedback).data, status=code)


def answer_as_json(answer: Answer) -> dict[str, Any]:
    return with_answer(payloads.completed(answer, list(answer.citations.all())))


def _answer(request: Request, answer_id: uuid.UUID) -> Answer:
    answer = answers_within_reach(request).filter(pk=answer_id).first()
    if answer is None:
        raise NotFound("This answer does not exist, or is not yours.")
    return answer
