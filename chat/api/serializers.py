"""What the API takes, and the shape of what it gives (the latter for the schema; chat.payloads builds it)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from chat.models import Answer, Feedback
from retrieval.api.fields import NameField, TextField
from retrieval.api.serializers import METHODS
from retrieval.types import SearchMethod

LONGEST_COMMENT = 2000


class AskRequestSerializer(serializers.Serializer[Any]):
    # How long a question may be is for chat.asking to say, in its own words.
    question = TextField(error_messages={"blank": "Please type a question."})
    conversation = serializers.UUIDField(required=False, allow_null=True, help_text="To go on with an earlier one.")
    collection = TextField(
        required=False, allow_blank=True, allow_null=True, max_length=50, help_text="Its short name; empty: all."
    )
    method = NameField(choices=METHODS, required=False, allow_null=True)
    stream = serializers.BooleanField(required=False, default=False, help_text="Answer as server-sent events.")


class CitedDocumentSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(allow_null=True)
    title = serializers.CharField()
    url = serializers.CharField()


class CitationSerializer(serializers.Serializer[Any]):
    marker = serializers.IntegerField(help_text="The number in brackets in the answer.")
    chunk_id = serializers.IntegerField(allow_null=True)
    document = CitedDocumentSerializer()
    section = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    quote = serializers.CharField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    support = serializers.FloatField(allow_null=True, help_text="From 0 to 1; null: not measured.")


class AnswerSerializer(serializers.Serializer[Any]):
    answer = serializers.CharField()
    refused = serializers.BooleanField(help_text="The documents do not answer the question.")
    citations = CitationSerializer(many=True)
    search_method = serializers.ChoiceField(choices=list(SearchMethod))
    answer_id = serializers.UUIDField()
    conversation = serializers.UUIDField()
    degraded = serializers.ListField(child=serializers.CharField(), help_text="Search legs that did not answer.")
    generator = serializers.CharField()
    notice = serializers.CharField(help_text="A fallback that the reader should know of.")


class SavedAnswerSerializer(AnswerSerializer):
    question = serializers.CharField()
    status = serializers.ChoiceField(choices=Answer.Status.choices)
    error = serializers.CharField(help_text="Why there is no answer, when the status is failed.")


class ProblemSerializer(serializers.Serializer[Any]):
    detail = serializers.CharField()


class FeedbackSerializer(serializers.ModelSerializer[Feedback]):
    helpful = serializers.BooleanField()
    comment = TextField(required=False, allow_blank=True, max_length=LONGEST_COMMENT, default="")

    class Meta:
        model = Feedback
        fields = ["helpful", "comment", "created_at", "updated_at"]
        read_only_fields = ["created_at", "updated_at"]
