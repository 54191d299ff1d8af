"""Serve the parts of OpenAI's protocol other than chat completions and embeddings."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import (
    NotFound,
)
from rest_framework.request import Request
from rest_framework.response import Response

from chat.answering.writers import list_choosable_models
from chat.api.endpoints import AskersView
from chat.api.openai_errors import ModelNotFound, OpenAIProblemSerializer, build_error_response
from chat.api.openai_types import ModelBody, ModelListBody
from core.key_limits import KeyScope
from core.user_types import AnyUser
from retrieval.index import embedder_choice
from retrieval.models import Collection

logger = logging.getLogger(__name__)

# The model's name chooses the search: this name for all documents, `ragsite/<collection>` for one collection.
# `@<language model>` at the end chooses the writer.
ALL = "ragsite"


class OpenAIView(AskersView):
    """Base class of views whose errors have OpenAI's form: ``{"error": {"message", "type", "param", "code"}}``."""

    tag = "OpenAI"
    problem_serializer = OpenAIProblemSerializer

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [import_string(settings.API_KEY_AUTHENTICATION)(is_only=True)]

    def get_exception_handler(self) -> Callable[[Exception, Any], Response]:
        return build_error_response


class ModelSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    object = serializers.CharField()
    created = serializers.IntegerField()
    owned_by = serializers.CharField()
    name = serializers.CharField()


class ModelListSerializer(serializers.Serializer[Any]):
    object = serializers.CharField()
    data = ModelSerializer(many=True)  # type: ignore[assignment]  # the field's name in the protocol


def list_models(user: AnyUser) -> list[ModelBody]:
    """Return the values that a client can send as `model`.

    They name all documents or one collection, also combined with each language model that the user may choose. The
    last one is the embedder.
    """
    collections = Collection.objects.readable_by(user).in_service()
    each = [_describe_model(f"{ALL}/{one.slug}", one.name, int(one.created_at.timestamp())) for one in collections]
    first = min((one["created"] for one in each), default=0)
    asked = [_describe_model(ALL, _("All documents"), first), *each]
    chosen = [
        _describe_model(f"{one['id']}@{name}", f"{one['name']} ({name})", one["created"])
        for name in list_choosable_models(user)
        for one in asked
    ]
    return [*asked, *chosen, describe_embedder()]


def describe_embedder() -> ModelBody:
    """Return the API's model object for the site's embedder. A different embedder gets a different id."""
    return _describe_model(embedder_choice.get_embedder().name, _("Embeddings"))


def _describe_model(name: str, title: str, created: int = 0) -> ModelBody:
    return {"id": name, "object": "model", "created": created, "owned_by": ALL, "name": title}


class ModelsView(OpenAIView):
    key_scopes = (KeyScope.ASK, KeyScope.SEARCH)

    @extend_schema(operation_id="models_list", responses=ModelListSerializer)
    def get(self, request: Request) -> Response:
        """List the models: one for all documents, one for each collection that the caller may ask, and the embedder."""
        body: ModelListBody = {"object": "list", "data": list_models(request.user)}
        return Response(body)


class ModelView(OpenAIView):
    key_scopes = (KeyScope.ASK, KeyScope.SEARCH)

    @extend_schema(operation_id="models_retrieve", responses=ModelSerializer)
    def get(self, request: Request, model: str) -> Response:
        """Return one model of the list."""
        known = {each["id"]: each for each in list_models(request.user)}
        if model not in known:
            raise ModelNotFound(model)
        return Response(known[model])


@extend_schema(exclude=True)
class UnsupportedPathView(OpenAIView):
    """Refuses all paths of OpenAI's protocol that the site does not offer, with status 404."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(
            "This site offers chat/completions, models and embeddings below /v1/; its own API is at /api/docs/."
        )
