"""Questions, answers and conversations over the API."""

from __future__ import annotations

import uuid
from typing import Any

from asgiref.sync import async_to_sync
from django.db import connection
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import APIException, PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.base import (
    AskersView,
    WhateverIsAccepted,
    answer_within_reach,
    conversation_within_reach,
    own_answer,
    own_conversations,
    visitor_behind,
)
from chat.api.events import answer_as_json, event_stream, saved_answer_as_json
from chat.api.serializers import (
    AnswerSerializer,
    AskRequestSerializer,
    ConversationSerializer,
    ConversationWithAnswersSerializer,
    FeedbackSerializer,
    SavedAnswerSerializer,
    ShareSerializer,
)
from chat.conversations import rights
from chat.conversations.listing import mentioning
from chat.conversations.sharing import share, stop_sharing
from chat.exceptions import InvalidQuestion
from chat.models import Answer, Conversation, Feedback
from chat.models.conversation import ConversationQuerySet
from chat.streaming import asking, readers, saving, streams
from chat.streaming.streams import EVENT_ID
from retrieval.api.callers import caller_of
from retrieval.api.pagination import Pagination
from retrieval.api.problems import InsufficientStorage, Unavailable
from retrieval.api.schema import EVENT

# The caller's conversations.


class ConversationsView(generics.ListAPIView[Conversation], AskersView):
    """The caller's conversations, the one asked in last first."""

    tag = "Conversations"
    serializer_class = ConversationSerializer
    pagination_class = Pagination
    queryset = Conversation.objects.none()

    def get_queryset(self) -> ConversationQuerySet:
        wanted = self.request.query_params.get("q", "")
        own = mentioning(own_conversations(self.request), self.request.user, wanted)
        return own.select_related("collection")

    @extend_schema(
        parameters=[OpenApiParameter("q", str, description="Words of the title, of a question, or of an answer.")]
    )
    def get(self, request: Request) -> Response:
        return self.list(request)


class ConversationView(AskersView):
    tag = "Conversations"

    @extend_schema(responses=ConversationWithAnswersSerializer)
    def get(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """A conversation with its answers, in the order of asking."""
        conversation = conversation_within_reach(request, conversation_id)
        return Response(ConversationWithAnswersSerializer(conversation, context={"request": request}).data)

    @extend_schema(request=ConversationSerializer, responses=ConversationSerializer)
    def patch(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """Give a conversation another title."""
        conversation = conversation_within_reach(request, conversation_id)
        wanted = ConversationSerializer(conversation, data=request.data, context={"request": request})
        wanted.is_valid(raise_exception=True)
        wanted.save()
        return Response(wanted.data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """Forget a conversation and its answers."""
        conversation_within_reach(request, conversation_id).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


class ShareView(AskersView):
    tag = "Conversations"

    @extend_schema(request=ShareSerializer, responses=ConversationSerializer)
    def post(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """Make a link under which others can read one answer, the conversation as it stands, or also what follows, as
        far as they may read its documents. Shared already, the link leads to what is chosen now.
        """
        conversation = conversation_within_reach(request, conversation_id)
        wanted = ShareSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        chosen = wanted.validated_data
        answer = conversation.answers.filter(pk=chosen["answer"]).first() if chosen.get("answer") else None
        if chosen["scope"] == Conversation.ShareScope.ANSWER and answer is None:
            raise ValidationError({"answer": ["Name an answer of this conversation."]})
        share(conversation, chosen["scope"], chosen["audience"], answer)
        return Response(ConversationSerializer(conversation, context={"request": request}).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """Take the link back: it leads nowhere from then on."""
        stop_sharing(conversation_within_reach(request, conversation_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


_EVENT_ID = {"type": "string", "pattern": "^([0-9]{1,9}-[0-9]{1,9})?$"}


class NotFinished(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_detail = "This answer is still being written: rate it when it is complete."
    default_code = "not_finished"


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
        answer = begin_answer(
            request,
            asked["question"],
            visitor=visitor_behind(request),
            conversation_id=asked.get("conversation"),
            collection=asked.get("collection"),
            method=asked.get("method") or "",
            model=asked.get("model") or "",
            anew=asked["anew"],
        )
        if asked["stream"]:
            return event_stream(answer, request)
        return Response(answer_as_json(finish_answer(answer, request.user)))


def begin_answer(request: Request, question: str, *, visitor: str = "", **asked: Any) -> Answer:
    """The caller's question as a row, not answered yet (see :func:`chat.streaming.asking.begin`).

    Raises: ValidationError by field; SiteBusy; BudgetSpent; DiskFull.
    """
    try:
        return asking.begin(question, user=request.user, visitor=visitor, caller=caller_of(request), **asked)
    except InvalidQuestion as error:
        raise ValidationError({error.field: [str(error)]}) from error


def finish_answer(answer: Answer, user: Any) -> Answer:
    """The answer, written to its end and saved.

    When the caller hangs up, Django cancels the request, asgiref what runs for it, and with that the writing.

    Raises: Unavailable with the sentence that it failed with; InsufficientStorage when it could not be saved, because
    the disk is full; PermissionDenied when ``user`` lost the right to its sources meanwhile.
    """
    # Nothing is asked of this connection while the answer is being written.
    if not connection.in_atomic_block:
        connection.close()
    last = async_to_sync(streams.finish)(answer.pk)
    if last.payload.get("code") == saving.DISK_FULL:
        raise InsufficientStorage(last.payload["message"])
    answer.refresh_from_db()
    if answer.status == Answer.Status.FAILED or not answer.is_finished:
        raise Unavailable(answer.error or last.payload.get("message"))
    if not readers.may_still_read(answer, user):
        raise PermissionDenied(rights.withheld_message())
    return answer


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
