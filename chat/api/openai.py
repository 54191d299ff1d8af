"""OpenAI's protocol except chat completions."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    NotAuthenticated,
    NotFound,
    Throttled,
    ValidationError,
)
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler

from chat.answering.writers import choosable_models
from chat.api.endpoints import AskersView
from core.api.fields import KnownFieldsOnly, NameField, TextField
from core.key_limits import Scope
from core.user_types import AnyUser
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import encode_query
from retrieval.models import Collection
from retrieval.search.search_places import place_to_search

logger = logging.getLogger(__name__)

# This model asks all documents, `ragsite/<collection>` one collection; `@<language model>` names the writer.
ALL = "ragsite"
BROKEN = "Something went wrong. Please try again."
# OpenAI's limit per request.
MOST_EMBEDDED = 2048
# Other searches wait for at most one batch.
EMBEDDED_AT_ONCE = 32


class ModelNotFound(APIException):
    status_code = status.HTTP_404_NOT_FOUND
    default_code = "model_not_found"

    def __init__(self, model: str, why: str = "There is no model named {!r}: GET /v1/models lists them.") -> None:
        super().__init__(why.format(model[:200]))


class OpenAIProblemSerializer(serializers.Serializer[Any]):
    error = serializers.DictField(help_text="`message`, `type`, `param` and `code`.")


class OpenAIView(AskersView):
    """A view with OpenAI's errors: ``{"error": {"message", "type", "param", "code"}}``."""

    tag = "OpenAI"
    problem_serializer = OpenAIProblemSerializer

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [import_string(settings.API_KEY_AUTHENTICATION)(is_only=True)]

    def get_exception_handler(self) -> Callable[[Exception, Any], Response]:
        return respond_to


def respond_to(exception: Exception, context: Any) -> Response:
    response = exception_handler(exception, context)
    if response is None:
        logger.error("A request of OpenAI's protocol broke.", exc_info=exception)
        return Response(error(BROKEN, kind="server_error"), status=status.HTTP_500_INTERNAL_SERVER_ERROR)
    param, message, code = "", str(getattr(exception, "detail", exception)), ""
    match exception:
        case AuthenticationFailed() | NotAuthenticated():
            code = "invalid_api_key"
        case Throttled():
            code = "rate_limit_exceeded"
        case ValidationError():
            param, found = _find_first(exception.detail)
            # Most programs show only the message.
            message, code = f"{param}: {found}" if param else str(found), getattr(found, "code", "")
        case APIException():
            code = str(exception.get_codes())
            param = "model" if isinstance(exception, ModelNotFound) else ""
    response.data = error(message, kind=kind_of(response.status_code), param=param, code=code)
    return response


def error(message: str, *, kind: str, param: str = "", code: str = "") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code or None}}


def kind_of(status_code: int) -> str:
    if status_code == status.HTTP_429_TOO_MANY_REQUESTS:
        return "rate_limit_error"
    return "server_error" if status_code >= status.HTTP_500_INTERNAL_SERVER_ERROR else "invalid_request_error"


def _find_first(detail: Any, path: str = "") -> tuple[str, Any]:
    """Return the first wrong field, such as ``messages[1].content``, and its message."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        step = f"[{name}]" if isinstance(name, int) else f".{name}" if path else str(name)
        return _find_first(inner, path if name == "non_field_errors" else path + step)
    if isinstance(detail, list):
        position = next(at for at, inner in enumerate(detail) if inner)
        inner = detail[position]
        return _find_first(inner, f"{path}[{position}]") if isinstance(inner, dict) else (path, inner)
    return path, detail


class ModelSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    object = serializers.CharField()
    created = serializers.IntegerField()
    owned_by = serializers.CharField()
    name = serializers.CharField()


class ModelListSerializer(serializers.Serializer[Any]):
    object = serializers.CharField()
    data = ModelSerializer(many=True)  # type: ignore[assignment]  # the field's name in the protocol


def models_for(user: AnyUser) -> list[dict[str, Any]]:
    """Return models for all documents and for each readable collection, and the embedder.

    Each but the embedder is repeated with every language model that the user may choose.
    """
    collections = Collection.objects.readable_by(user).in_service()
    each = [_describe_model(f"{ALL}/{one.slug}", one.name, int(one.created_at.timestamp())) for one in collections]
    first = min((one["created"] for one in each), default=0)
    asked = [_describe_model(ALL, _("All documents"), first), *each]
    chosen = [
        _describe_model(f"{one['id']}@{name}", f"{one['name']} ({name})", one["created"])
        for name in choosable_models(user)
        for one in asked
    ]
    return [*asked, *chosen, embedding_model()]


def embedding_model() -> dict[str, Any]:
    """Return the embedder; vectors of different ids cannot be compared."""
    return _describe_model(embedder_choice.embedder().name, _("Embeddings"))


def _describe_model(name: str, title: str, created: int = 0) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": ALL, "name": title}


class ModelsView(OpenAIView):
    key_scopes = (Scope.ASK, Scope.SEARCH)

    @extend_schema(operation_id="models_list", responses=ModelListSerializer)
    def get(self, request: Request) -> Response:
        """List all documents as one model, each collection that the caller may ask, and the embedder."""
        return Response({"object": "list", "data": models_for(request.user)})


class ModelView(OpenAIView):
    key_scopes = (Scope.ASK, Scope.SEARCH)

    @extend_schema(operation_id="models_retrieve", responses=ModelSerializer)
    def get(self, request: Request, model: str) -> Response:
        """Return one model of the list."""
        known = {each["id"]: each for each in models_for(request.user)}
        if model not in known:
            raise ModelNotFound(model)
        return Response(known[model])


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
class TextsField(serializers.Field[list[str], Any, Any, Any]):
    """One text or several, each short enough for the embedder."""

    def to_internal_value(self, data: Any) -> list[str]:
        texts = [data] if isinstance(data, str) else data
        if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValidationError("This must be a text, or a list of texts, none empty. Lists of tokens are not read.")
        if not 1 <= len(texts) <= MOST_EMBEDDED:
            raise ValidationError(f"This must have between 1 and {MOST_EMBEDDED} texts.")
        most = embedder_choice.embedder().max_tokens
        for position, count in enumerate(embedder_choice.embedder().count_tokens(texts)):
            if count > most:
                raise ValidationError(f"Text {position} has {count} tokens; the model reads at most {most}.")
        return texts


class EmbeddingRequestSerializer(KnownFieldsOnly):
    ignored_fields = frozenset({"user"})
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
        if value not in (None, embedder_choice.embedder().dimension):
            raise ValidationError(f"Vectors of this model have {embedder_choice.embedder().dimension} dimensions.")
        return value


class EmbeddingListSerializer(serializers.Serializer[Any]):
    object = serializers.CharField()
    data = serializers.ListField(child=serializers.DictField(), help_text="Each has `index` and `embedding`.")  # type: ignore[assignment]
    model = serializers.CharField()
    usage = serializers.DictField()


class EmbeddingsView(OpenAIView):
    throttle_scope = "search"
    key_scopes = (Scope.SEARCH,)

    @extend_schema(
        operation_id="embeddings_create", request=EmbeddingRequestSerializer, responses=EmbeddingListSerializer
    )
    def post(self, request: Request) -> Response:
        """Return unit vectors of texts by the embedder of the site's search, with its prompt for them."""
        body = EmbeddingRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        embedder = embedder_choice.embedder()
        if fields["model"] != embedder.name:
            raise ModelNotFound(
                fields["model"], f"{{!r}} makes no vectors on this site: the model is {embedder.name!r}."
            )
        texts = fields["input"]
        is_query = fields.get("input_type") == "query"
        vectors: list[Any] = []
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            batch = texts[start : start + EMBEDDED_AT_ONCE]
            with place_to_search():
                vectors.extend([encode_query(text) for text in batch] if is_query else embedder.embed_documents(batch))
        encoded: list[Any] = [vector.tolist() for vector in vectors]
        if fields.get("encoding_format") == "base64":
            encoded = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        data = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(encoded)]
        tokens = sum(embedder.count_tokens(texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return Response({"object": "list", "data": data, "model": embedder.name, "usage": usage})


@extend_schema(exclude=True)
class NotOfferedView(OpenAIView):
    """Rejects the rest of OpenAI's protocol."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(
            "This site offers chat/completions, models and embeddings below /v1/; its own API is at /api/docs/."
        )
