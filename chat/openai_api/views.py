"""The part of OpenAI's protocol that a site of cited answers can keep: chat completions, and the list of models."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat import asking
from chat.api.ask import finish_answer
from chat.api.events import unbuffered
from chat.models import Answer, Conversation
from chat.openai_api.completions import ChatCompletion
from chat.openai_api.errors import ModelNotFound, OpenAIView
from chat.openai_api.messages import INSTRUCTING_ROLES, AskedQuestion, NoQuestion, parse_messages
from chat.openai_api.models import collection_in, list_models, model_of
from chat.openai_api.parameters import list_ignored
from chat.openai_api.serializers import (
    CompletionRequestSerializer,
    CompletionSerializer,
    ModelListSerializer,
    ModelSerializer,
)
from chat.openai_api.stream import chunks
from chat.streaming import payloads
from retrieval.api.callers import caller_of
from retrieval.api.schema import EVENT
from retrieval.models import Collection


class CompletionsView(OpenAIView):
    throttle_scope = "ask"

    @extend_schema(
        operation_id="chat_completions_create",
        request=CompletionRequestSerializer,
        responses={
            (200, "application/json"): CompletionSerializer,
            (200, "text/event-stream"): OpenApiResponse(
                EVENT, "With `stream`: `chat.completion.chunk` objects, then `[DONE]`."
            ),
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """A cited answer to the last message, in OpenAI's form; earlier messages complete it."""
        body = CompletionRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        try:
            asked = parse_messages(fields["messages"])
        except NoQuestion as error:
            raise ValidationError({"messages": [str(error)]}) from error
        collection = collection_in(fields.get("model") or "")
        answer = _begin_answer(request, asked, collection, fields)
        instructed = any(message.role in INSTRUCTING_ROLES for message in fields["messages"])
        completion = ChatCompletion(
            id=f"chatcmpl-{answer.pk.hex}",
            created=int(answer.created_at.timestamp()),
            model=model_of(collection),
            question=answer.question,
            site=request.build_absolute_uri("/").rstrip("/"),
            ignored=list_ignored(body.initial_data, instructed),
        )
        if fields.get("stream"):
            options = fields.get("stream_options") or {}
            return unbuffered(
                chunks(answer.pk, request.user, completion, include_usage=bool(options.get("include_usage")))
            )
        answer = finish_answer(answer, request.user)
        return Response(completion.whole(payloads.completed(answer, list(answer.citations.all())), answer.sources))


def _begin_answer(request: Request, asked: AskedQuestion, collection: str, fields: dict[str, Any]) -> Answer:
    """The answer, not yet written. Of earlier turns, those of the messages count: the caller may have changed them."""
    try:
        return asking.begin(
            asked.question,
            user=request.user,
            visitor="",
            caller=caller_of(request),
            conversation_id=_continued_conversation(request.user, asked, collection),
            collection=collection,
            method=fields.get("method") or "",
            anew=bool(fields.get("anew")),
            history=asked.history,
        )
    except asking.InvalidQuestion as error:
        if error.field == "collection":
            raise ModelNotFound(f"There is no model named {fields['model']!r}: GET /v1/models lists them.") from error
        raise ValidationError({"messages" if error.field == "question" else error.field: [str(error)]}) from error


def _continued_conversation(user: Any, asked: AskedQuestion, collection: str) -> uuid.UUID | None:
    """The user's conversation whose last answer is the last reply of the messages; None: they begin a new one.

    The protocol names no conversations: without this, each follow-up would become one in the user's list. Programs
    without a user have no list, and must not be put together with strangers who asked the same.
    """
    if not getattr(user, "is_authenticated", False) or not asked.history:
        return None
    last = asked.history[-1]
    scope = {"collection__slug": collection} if collection else {"collection": None}
    answers = Answer.objects.filter(
        conversation__in=Conversation.objects.of(user, "").filter(**scope), question=last.question, text=last.answer
    )
    answer = answers.order_by("-created_at").first()
    if answer is None or answer.conversation.answers.filter(created_at__gt=answer.created_at).exists():
        return None
    return answer.conversation_id


def _models_for(user: Any) -> list[dict[str, Any]]:
    return list_models(Collection.objects.readable_by(user).in_service())


class ModelsView(OpenAIView):
    @extend_schema(operation_id="models_list", responses=ModelListSerializer)
    def get(self, request: Request) -> Response:
        """All documents as one model, and each collection in service that the caller may ask as another."""
        return Response({"object": "list", "data": _models_for(request.user)})


class ModelView(OpenAIView):
    @extend_schema(operation_id="models_retrieve", responses=ModelSerializer)
    def get(self, request: Request, model: str) -> Response:
        for known in _models_for(request.user):
            if known["id"] == model:
                return Response(known)
        raise ModelNotFound(f"There is no model named {model[:100]!r}: GET /v1/models lists them.")


@extend_schema(exclude=True)
class NotOfferedView(OpenAIView):
    """What OpenAI's protocol has and this site has not, in a form that its clients can show."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound("This site offers /v1/chat/completions and /v1/models; the rest of its API is at /api/docs/.")
