from __future__ import annotations

import uuid
from typing import Any, ClassVar

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import mixins, status, viewsets
from rest_framework.exceptions import APIException, PermissionDenied, Throttled, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.event_streams import event_stream
from chat.api.serializers import (
    AnswerSerializer,
    AskRequestSerializer,
    ConversationSerializer,
    ConversationWithAnswersSerializer,
    FeedbackSerializer,
    SavedAnswerSerializer,
    serialize_saved_answers,
)
from chat.conversations import rights
from chat.conversations.listing import search_conversations
from chat.conversations.rights import (
    find_readable_answer,
    get_visitor,
    list_own_answers,
    list_own_conversations,
    list_unowned_answers,
    list_unowned_conversations,
)
from chat.exceptions import BudgetSpent, InvalidQuestion, SiteBusy
from chat.models import Answer, Conversation, Feedback
from chat.models.conversation import ConversationQuerySet
from chat.streaming import asking, payloads, readers, saving, streams
from chat.streaming.streams import EVENT_ID
from core.api.callers import identify_caller
from core.api.pagination import Pagination
from core.api.permissions import MayAsk
from core.api.problems import ApiView, InsufficientStorage, JSONParser, SiteBusyProblem, SiteUnavailable
from core.api.schema import EVENT
from core.key_limits import KeyScope
from core.user_types import AnyUser
from retrieval.rights.chosen_filters import to_json


class AskersView(ApiView):
    """Base class of API views that only callers who may ask questions can use."""

    tag = "Answers"
    parser_classes = [JSONParser]
    permission_classes = [MayAsk]
    key_scopes: ClassVar[tuple[KeyScope, ...]] = (KeyScope.ASK,)

    def convert_error(self, error: Exception) -> Exception:
        if isinstance(error, SiteBusy):
            return SiteBusyProblem(str(error), error.retry_after_seconds)
        if isinstance(error, BudgetSpent):
            return Throttled(error.retry_after_seconds, str(error))
        return super().convert_error(error)


def get_own_answer(request: Request, answer_id: uuid.UUID) -> Answer:
    """Return the answer to an earlier question of the caller. Raises: Http404.

    A caller without an account may also get an answer that has no owner.
    """
    answers = list_own_answers(request._request)
    if not request.user.is_authenticated:
        answers = answers | list_unowned_answers()
    return get_object_or_404(answers, pk=answer_id)


@extend_schema_view(
    list=extend_schema(
        parameters=[OpenApiParameter("q", str, description="Words of the title, of a question, or of an answer.")]
    )
)
class ConversationViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    mixins.DestroyModelMixin,
    viewsets.GenericViewSet[Conversation],
    AskersView,
):
    """The caller's conversations, newest question first. Deleting one deletes its answers."""

    tag = "Conversations"
    pagination_class = Pagination
    queryset = Conversation.objects.select_related("collection")
    lookup_value_converter = "uuid"

    def get_serializer_class(self) -> type[ConversationSerializer]:
        return ConversationWithAnswersSerializer if self.action == "retrieve" else ConversationSerializer

    def get_queryset(self) -> ConversationQuerySet:
        own = list_own_conversations(self.request._request)
        if self.action == "list":
            own = search_conversations(own, self.request.user, self.request.query_params.get("q", ""))
        else:
            own = own | list_unowned_conversations()
        return own.select_related("collection")


_EVENT_ID = {"type": "string", "pattern": "^([0-9]{1,9}-[0-9]{1,9})?$"}


class NotFinished(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_detail = "This answer is still being written: rate it when it is complete."
    default_code = "not_finished"


class AskView(AskersView):
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
        """Answer a question with citations, from the documents that the caller may read."""
        # If the caller sent no cookie, no session is stored, because it would never be used again.
        is_visitor = not request.user.is_authenticated and settings.SESSION_COOKIE_NAME in request.COOKIES
        asked, answer = begin_requested_answer(
            request, request.data, get_visitor(request._request) if is_visitor else ""
        )
        if asked["stream"]:
            response: HttpResponseBase = event_stream(answer, request)
        else:
            answer = wait_for_answer(answer, request.user)
            response = Response(payloads.build_completed_payload(answer, answer.citations.all()))
        response["Answer-Id"], response["Conversation-Id"] = str(answer.pk), str(answer.conversation_id)
        return response


def begin_requested_answer(request: Request, body: Any, visitor: str = "") -> tuple[dict[str, object], Answer]:
    """Validate ``body`` and create the answer to its question. Raises: see :func:`begin_answer`."""
    wanted = AskRequestSerializer(data=body)
    wanted.is_valid(raise_exception=True)
    asked = wanted.validated_data
    filters = asked.get("filters")
    return asked, begin_answer(
        request,
        asked["question"],
        visitor=visitor,
        conversation_id=asked.get("conversation"),
        collection=asked.get("collection"),
        filters=None if filters is None else to_json(filters),
        method=asked.get("method") or "",
        model=asked.get("model") or "",
        anew=asked["anew"],
    )


def begin_answer(request: Request, question: str, *, visitor: str = "", **asked: Any) -> Answer:
    """Create a PENDING answer (not yet written) to the caller's question.

    Raises: ValidationError, SiteBusy, BudgetSpent, DiskFull.
    """
    try:
        return asking.create_answer(
            question, user=request.user, visitor=visitor, caller=identify_caller(request), **asked
        )
    except InvalidQuestion as error:
        raise ValidationError({error.field: [str(error)]}) from error


def wait_for_answer(answer: Answer, user: AnyUser) -> Answer:
    """Wait until the answer is written, and return it. The writing stops if the caller disconnects.

    Raises: SiteUnavailable with the error of a failed answer; InsufficientStorage; PermissionDenied if ``user`` lost
    the right to its sources.
    """
    if not connection.in_atomic_block:
        connection.close()
    last = async_to_sync(streams.complete_answer)(answer.pk)
    if last.payload.get("code") == saving.DISK_FULL:
        raise InsufficientStorage(last.payload["message"])
    answer.refresh_from_db()
    if answer.status == Answer.Status.FAILED or not answer.is_finished:
        raise SiteUnavailable(answer.error or last.payload.get("message"))
    if not readers.may_still_read(answer, user):
        raise PermissionDenied(rights.get_withheld_message())
    return answer


class AnswerView(AskersView):
    @extend_schema(responses=SavedAnswerSerializer)
    def get(self, request: Request, answer_id: uuid.UUID) -> Response:
        """Return an earlier answer by the caller, and whether it is complete."""
        answer = find_readable_answer(request._request, answer_id, of_nobody=True)
        return Response(serialize_saved_answers([answer], request.user)[0])


class AnswerStreamView(AskersView):
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
        """Return the rest of an answer's stream. Any of the site's processes may be writing the answer."""
        named = {"after": request.query_params.get("after"), "Last-Event-ID": request.headers.get("Last-Event-ID")}
        for name, event_id in named.items():
            if event_id and not EVENT_ID.fullmatch(event_id):
                raise ValidationError({name: ["This is not the id of an event, such as 1-12."]})
        after = named["after"] or named["Last-Event-ID"] or ""
        return event_stream(find_readable_answer(request._request, answer_id, of_nobody=True), request, after)


class StopAnswerView(AskersView):
    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, answer_id: uuid.UUID) -> Response:
        """Stop the writing of an answer; the text so far is kept. A finished answer does not change."""
        if rights.may_change_all_answers(request.user):
            answer = get_object_or_404(Answer, pk=answer_id)
        else:
            answer = get_own_answer(request, answer_id)
        async_to_sync(streams.stop_answer)(answer.pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class FeedbackView(AskersView):
    @extend_schema(request=FeedbackSerializer, responses={200: FeedbackSerializer, 201: FeedbackSerializer})
    def post(self, request: Request, answer_id: uuid.UUID) -> Response:
        """Rate an answer as helpful or not. A second rating replaces the first."""
        answer = get_own_answer(request, answer_id)
        wanted = FeedbackSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        if not answer.is_finished:
            raise NotFinished
        feedback, created = Feedback.objects.update_or_create(answer=answer, defaults=dict(wanted.validated_data))
        code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        return Response(FeedbackSerializer(feedback).data, status=code)
