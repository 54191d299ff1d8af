from __future__ import annotations

import base64
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import (
    ValidationError,
)
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.openai import OpenAIView
from chat.api.openai_errors import ModelNotFound
from chat.api.openai_types import EmbeddingListBody
from core.api.fields import KnownFieldsOnly, NameField, TextField
from core.key_limits import KeyScope
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import encode_query
from retrieval.search.search_places import wait_for_search_slot

MOST_EMBEDDED = 2048


# A batch contains at most this many texts, because searches wait until it is finished.
EMBEDDED_AT_ONCE = 32


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
class TextsField(serializers.Field[list[str], Any, Any, Any]):
    """One text or several, each short enough for the embedder."""

    def to_internal_value(self, data: Any) -> list[str]:
        texts = [data] if isinstance(data, str) else data
        if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValidationError("This must be a text, or a list of texts, none empty. Lists of tokens are not read.")
        if not 1 <= len(texts) <= MOST_EMBEDDED:
            raise ValidationError(f"This must have between 1 and {MOST_EMBEDDED} texts.")
        most = embedder_choice.get_embedder().max_tokens
        for position, count in enumerate(embedder_choice.get_embedder().count_tokens(texts)):
            if count > most:
                raise ValidationError(f"Text {position} has {count} tokens; the model reads at most {most}.")
        return texts


class EmbeddingRequestSerializer(KnownFieldsOnly):
    ignored_fields = frozenset({"keep_alive", "metadata", "priority", "timeout", "user"})
    ignores_empty = True
    model = TextField(max_length=200, help_text="The embedder, as `GET /v1/models` lists it.")
    input = TextsField()
    encoding_format = NameField(choices=("float", "base64"), required=False, allow_null=True)
    dimensions = serializers.IntegerField(required=False, allow_null=True, help_text="The model's own width only.")
    input_type = NameField(
        choices=("passage", "query"),
        required=False,
        allow_null=True,
        help_text="Not of OpenAI's: what the texts are. `query` for questions; otherwise they are passages.",
    )

    def validate_dimensions(self, value: int | None) -> int | None:
        if value not in (None, embedder_choice.get_embedder().dimension):
            raise ValidationError(f"Vectors of this model have {embedder_choice.get_embedder().dimension} dimensions.")
        return value


class EmbeddingListSerializer(serializers.Serializer[Any]):
    object = serializers.CharField()
    data = serializers.ListField(child=serializers.DictField(), help_text="Each has `index` and `embedding`.")  # type: ignore[assignment]
    model = serializers.CharField()
    usage = serializers.DictField()


class EmbeddingsView(OpenAIView):
    throttle_scope = "search"
    key_scopes = (KeyScope.SEARCH,)

    @extend_schema(
        operation_id="embeddings_create", request=EmbeddingRequestSerializer, responses=EmbeddingListSerializer
    )
    def post(self, request: Request) -> Response:
        """Return the unit vectors of texts.

        The site's embedder computes them, with its prompt for questions or passages.
        """
        body = EmbeddingRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        embedder = embedder_choice.get_embedder()
        if fields["model"] != embedder.name:
            raise ModelNotFound(
                fields["model"], f"{{!r}} makes no vectors on this site: the model is {embedder.name!r}."
            )
        texts = fields["input"]
        is_query = fields.get("input_type") == "query"
        vectors: list[Any] = []
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            batch = texts[start : start + EMBEDDED_AT_ONCE]
            with wait_for_search_slot():
                vectors.extend([encode_query(text) for text in batch] if is_query else embedder.embed_documents(batch))
        encoded: list[list[float] | str] = [vector.tolist() for vector in vectors]
        if fields.get("encoding_format") == "base64":
            encoded = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        tokens = sum(embedder.count_tokens(texts))
        answer: EmbeddingListBody = {
            "object": "list",
            "data": [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(encoded)],
            "model": embedder.name,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
        return Response(answer)
