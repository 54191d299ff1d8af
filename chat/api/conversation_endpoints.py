"""The caller's conversations."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.base import AskersView, conversation_within_reach, own_conversations
from chat.api.serializers import ConversationSerializer, ConversationWithAnswersSerializer, ShareSerializer
from chat.conversations.listing import mentioning
from chat.conversations.sharing import share, stop_sharing
from chat.models import Conversation
from chat.models.conversation import ConversationQuerySet
from retrieval.api.pagination import Pagination


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
