"""What a request for a completion may hold, and the shape of what comes back (the latter for the schema)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.api.serializers import AnswerSerializer, CitationSerializer, QuestionChoiceSerializer
from chat.openai_api.messages import Message
from chat.openai_api.parameters import refusals
from retrieval.api.fields import FlagField, NameField, TextField
from retrieval.api.serializers import METHODS

ROLES = ("system", "developer", "user", "assistant")
LONGEST_MODEL = 100


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "text"],
                    "properties": {"type": {"type": "string", "enum": ["text"]}, "text": {"type": "string"}},
                },
            },
        ]
    }
)
class ContentField(serializers.Field[str, Any, Any, Any]):
    """A text, or a list of parts that are texts."""

    default_error_messages = {
        "invalid": "This must be a string, or a list of parts of the type text.",
        "not_text": "Only parts of the type text are understood; pictures, sound and files cannot be asked about.",
    }

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str):
            return data
        if not isinstance(data, list) or not all(isinstance(part, dict) for part in data):
            self.fail("invalid")
        if any(part.get("type") != "text" for part in data):
            self.fail("not_text")
        if not all(isinstance(part.get("text"), str) for part in data):
            self.fail("invalid")
        return "\n".join(part["text"] for part in data)


class MessageSerializer(serializers.Serializer[Any]):
    role = NameField(choices=ROLES)
    content = ContentField(help_text="The last message is the question; those before complete it.")

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and data.get("tool_calls"):
            raise serializers.ValidationError({"tool_calls": ["Calls of tools are not understood: leave them out."]})
        fields = super().to_internal_value(data)
        return Message(fields["role"], fields["content"])


class StreamOptionsSerializer(serializers.Serializer[Any]):
    include_usage = FlagField(required=False, default=False)


class CompletionRequestSerializer(serializers.Serializer[Any]):
    model = TextField(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=LONGEST_MODEL,
        help_text="`ragsite/<collection>` asks one collection; any other name asks all of them.",
    )
    messages = MessageSerializer(many=True, allow_empty=False)
    stream = FlagField(required=False, allow_null=True)
    stream_options = StreamOptionsSerializer(required=False, allow_null=True)
    method = NameField(choices=METHODS, required=False, allow_null=True, help_text="Not of OpenAI's: how to search.")
    anew = FlagField(
        required=False, allow_null=True, help_text="Not of OpenAI's: answer again, even if answered before."
    )

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (refused := refusals(data)):
            raise serializers.ValidationError({name: [why] for name, why in refused.items()}, code="unsupported")
        return super().to_internal_value(data)


class UrlCitationSerializer(serializers.Serializer[Any]):
    start_index = serializers.IntegerField(help_text="Where the marker begins in the text.")
    end_index = serializers.IntegerField()
    title = serializers.CharField()
    url = serializers.URLField(help_text="The cited words in their document.")


class AnnotationSerializer(serializers.Serializer[Any]):
    type = serializers.ChoiceField(choices=["url_citation"])
    url_citation = UrlCitationSerializer()


class CompletionMessageSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=["assistant"])
    content = serializers.CharField()
    refusal = serializers.CharField(allow_null=True)
    annotations = AnnotationSerializer(many=True)
    citations = CitationSerializer(many=True)


class ChoiceSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    message = CompletionMessageSerializer()
    finish_reason = serializers.ChoiceField(choices=["stop"])
    logprobs = serializers.JSONField(allow_null=True)


class CompletionUsageSerializer(serializers.Serializer[Any]):
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    total_tokens = serializers.IntegerField()
    estimated = serializers.BooleanField(help_text="Reckoned by the length of the texts, not counted by a model.")


class CompletionSerializer(AnswerSerializer):
    """OpenAI's completion, and beside it everything that `ask` returns."""

    id = serializers.CharField()
    object = serializers.ChoiceField(choices=["chat.completion"])
    created = serializers.IntegerField()
    model = serializers.CharField()
    choices = ChoiceSerializer(many=True)  # type: ignore[assignment]  # OpenAI's, in place of `ask`'s
    question_choices = QuestionChoiceSerializer(many=True, help_text="What `ask` calls `choices`.")
    usage = CompletionUsageSerializer()  # type: ignore[assignment]  # OpenAI's form, in place of `ask`'s
    sources = serializers.ListField(child=serializers.DictField(), help_text="What the markers refer to.")
    ignored = serializers.ListField(child=serializers.CharField(), help_text="What was sent and had no effect.")


class ModelSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    object = serializers.ChoiceField(choices=["model"])
    created = serializers.IntegerField()
    owned_by = serializers.CharField()
    name = serializers.CharField()


class ModelListSerializer(serializers.Serializer[Any]):
    object = serializers.ChoiceField(choices=["list"])
    data = ModelSerializer(many=True)  # type: ignore[assignment]  # the field's name in the protocol


class ErrorSerializer(serializers.Serializer[Any]):
    message = serializers.CharField()
    type = serializers.CharField()
    param = serializers.CharField(allow_null=True)
    code = serializers.CharField(allow_null=True)


class OpenAIProblemSerializer(serializers.Serializer[Any]):
    error = ErrorSerializer()
