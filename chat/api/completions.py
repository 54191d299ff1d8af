"""Serve OpenAI's chat completions from the site's own answers.

Parameters that would change the meaning of an answer are refused; parameters that only tune a model are ignored.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat.answering.writers import list_choosable_models
from chat.api.completion_chunks import _remove_all_markers, stream_chunks
from chat.api.completion_requests import MOST_TURNS, CompletionRequestSerializer, _clean_text
from chat.api.completion_responses import ChatCompletion, CompletionSerializer
from chat.api.endpoints import begin_answer, wait_for_answer
from chat.api.openai import ALL, OpenAIView, describe_embedder, list_models
from chat.api.openai_errors import ModelNotFound
from chat.models import Answer, Conversation
from chat.streaming import payloads, sse
from core.api.schema import EVENT
from core.user_types import AnyUser
from retrieval.types import Turn


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
        """Answer the last message with citations. Earlier messages are its context."""
        body = CompletionRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        model, listed = fields.get("model") or ALL, fields.get("list_sources")
        if model == describe_embedder()["id"]:
            raise ModelNotFound(model, "The model {!r} makes vectors: ask `ragsite`.")
        if model not in {known["id"] for known in list_models(request.user)}:
            raise ModelNotFound(model)
        named, _, writer = model.partition("@")
        collection = named.removeprefix(ALL).removeprefix("/")
        try:
            # OpenAI's protocol has no conversation ids, so the last reply identifies the conversation.
            answer = begin_answer(
                request,
                fields["question"],
                conversation_id=_find_conversation(request.user, fields["history"], collection),
                collection=collection,
                method=fields.get("method") or "",
                model=writer or next(iter(list_choosable_models(request.user)), ""),
                anew=bool(fields.get("anew")),
                history=fields["history"],
            )
        except ValidationError as refused:
            # The question is in `messages`, so an error of our field `question` is reported there.
            named = {"messages" if name == "question" else name: why for name, why in refused.detail.items()}  # type: ignore[union-attr]  # by field
            raise ValidationError(named) from refused
        completion = ChatCompletion(
            id=f"chatcmpl-{answer.pk.hex}",
            created=int(answer.created_at.timestamp()),
            model=model,
            question=answer.question,
            site=request.build_absolute_uri("/").rstrip("/"),
            ignored=body.list_ignored_fields(),
            lists_sources=getattr(request.auth, "lists_sources", False) if listed is None else listed,
        )
        if fields.get("stream"):
            include_usage = bool((fields.get("stream_options") or {}).get("include_usage"))
            return sse.build_event_response(
                stream_chunks(answer.pk, request.user, completion, include_usage=include_usage)
            )
        answer = wait_for_answer(answer, request.user)
        return Response(
            completion.build_completion(
                payloads.build_completed_payload(answer, answer.citations.all()), answer.sources
            )
        )


def _find_conversation(user: AnyUser, history: Sequence[Turn], collection: str) -> uuid.UUID | None:
    """Return the user's conversation whose last answer is the last reply in ``history``; None if there is none.

    Callers without an account get None, because they must not join the conversations of strangers.
    """
    if not getattr(user, "is_authenticated", False) or not history:
        return None
    last = history[-1]
    scope = {"collection__slug": collection} if collection else {"collection": None}
    answers = Answer.objects.filter(
        conversation__in=Conversation.objects.owned_by(user, "").filter(**scope), question=last.question
    ).exclude(text="")
    # The client's copy of the reply has other marker numbers, and may end with a list of sources.
    said = _remove_all_markers(last.answer)
    newest = answers.order_by("-created_at")[:MOST_TURNS]
    answer = next((each for each in newest if said.startswith(_remove_all_markers(_clean_text(each.text)))), None)
    if answer is None or answer.conversation.answers.filter(created_at__gt=answer.created_at).exists():
        return None
    return answer.conversation_id
