"""Sources over the API: for staff who may curate their collection and see all of its documents."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import IntegrityError
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from retrieval.api.pagination import Pagination
from retrieval.api.parsers import JSONParser
from retrieval.api.permissions import StaffWithPermission
from retrieval.api.problems import ApiView
from retrieval.api.serializer_fields import FlagField, KnownFieldsOnly, MetadataObjectField, NameField, TextField
from retrieval.api.serializers import ProblemSerializer
from retrieval.documents.drafts.editing import reason_not_to_change
from retrieval.exceptions import DocumentRejected
from retrieval.key_limits import Scope, reading_and_writing
from retrieval.models import Source, SourceRun
from retrieval.rights import source_collections
from retrieval.sources import sync_runs
from retrieval.sources.kinds import KINDS
from retrieval.sources.options import read_options, save_source, secret_names, store_options
from retrieval.sources.states import SourceState, standing_of

_LONGEST_INTERVAL = 60 * 24 * 366


class SourceRunSerializer(serializers.ModelSerializer[SourceRun]):
    details = serializers.DictField(
        help_text="Names of items by what became of them, a hundred of each; `failures` are pairs of name and reason."
    )

    class Meta:
        model = SourceRun
        fields = [
            "id", "status", "is_preview", "added", "changed", "unchanged", "removed", "failed", "kept_back", "error",
            "details", "created_at", "finished_at", "seconds",
        ]  # fmt: skip
        read_only_fields = fields


class SourceSerializer(KnownFieldsOnly, serializers.ModelSerializer[Source]):
    """``settings`` are those of the kind; a secret one is written and never read."""

    collection = TextField(max_length=50, help_text="Its short name; it stays.")
    name = TextField(max_length=100)
    kind = NameField(choices=sorted(KINDS), help_text="It stays.")
    settings = serializers.DictField(
        source="options", help_text="As in the admin's form of this kind; passwords are written and never read."
    )
    metadata = MetadataObjectField(required=False, help_text="Of all its documents.")
    interval_minutes = serializers.IntegerField(min_value=0, max_value=_LONGEST_INTERVAL, required=False)
    is_paused = FlagField(read_only=True)
    state = serializers.SerializerMethodField()
    documents = serializers.SerializerMethodField()
    last_run = serializers.SerializerMethodField()

    class Meta:
        model = Source
        fields = [
            "id", "collection", "name", "kind", "settings", "metadata", "interval_minutes", "is_paused", "state",
            "documents", "next_run_at", "last_run", "created_at",
        ]  # fmt: skip
        read_only_fields = ["next_run_at"]
        validators: list[Any] = []

    def get_state(self, source: Source) -> SourceState:
        return standing_of(source).state

    def get_documents(self, source: Source) -> int:
        return source.own_documents.count()

    @extend_schema_field(SourceRunSerializer(allow_null=True))
    def get_last_run(self, source: Source) -> Any:
        last = standing_of(source).last
        return SourceRunSerializer(last).data if last else None

    def to_representation(self, instance: Source) -> dict[str, Any]:
        shown: dict[str, Any] = {**super().to_representation(instance), "collection": instance.collection.slug}
        return shown

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The settings as their kind's form takes them; of those that are not sent, the ones that there are."""
        source: Source | None = self.instance
        if source is not None:
            for name in ("kind", "collection"):
                kept = source.kind if name == "kind" else source.collection.slug
                if attrs.pop(name, kept) != kept:
                    raise ValidationError({name: ["A source keeps it: add another one."]})
        else:
            collections = source_collections(self.context["request"].user).filter(slug=attrs["collection"])
            if (collection := collections.first()) is None:
                raise ValidationError({"collection": ["There is no collection with this short name."]})
            if reason := reason_not_to_change(collection):
                raise ValidationError({"collection": [reason]})
            attrs["collection"] = collection
        if "options" in attrs:
            kind = KINDS[source.kind if source is not None else attrs["kind"]]
            known = source.options if source is not None else _defaults(kind.name)
            try:
                attrs["options"] = read_options(kind, {**known, **attrs["options"]})
            except DjangoValidationError as error:
                raise ValidationError({"settings": error.message_dict}) from error
        return attrs

    def create(self, validated_data: dict[str, Any]) -> Source:
        options = validated_data.pop("options")
        kind = KINDS[validated_data["kind"]]
        source = Source(**{"interval_minutes": kind.interval_minutes, **validated_data})
        return self._save(source, options)

    def update(self, instance: Source, validated_data: dict[str, Any]) -> Source:
        options = validated_data.pop("options", None)
        for name, value in validated_data.items():
            setattr(instance, name, value)
        return self._save(instance, options)

    def _save(self, source: Source, options: dict[str, Any] | None) -> Source:
        if options is not None:
            store_options(source, KINDS[source.kind], options)
        source.next_run_at = None
        try:
            save_source(source)
        except DocumentRejected as error:
            raise ValidationError({"metadata": [str(error)]}) from error
        except IntegrityError:
            raise ValidationError({"name": ["This collection has a source of this name already."]}) from None
        return source


def _defaults(kind: str) -> dict[str, Any]:
    """The settings that a form begins with."""
    fields = KINDS[kind].options.base_fields
    secrets = secret_names(KINDS[kind])
    return {name: field.initial for name, field in fields.items() if field.initial is not None and name not in secrets}


class MayChange(StaffWithPermission):
    """A button changes what is there, though it is pressed by POST."""

    actions = {**StaffWithPermission.actions, "POST": "change"}


_BUTTON: dict[str, Any] = {
    "permission_classes": [MayChange],
    "key_scopes": reading_and_writing((Scope.DOCUMENTS_WRITE,), (Scope.DOCUMENTS_WRITE,)),
}


class SourceViewSet(
    mixins.ListModelMixin,
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[Source],
    ApiView,
):
    """Where documents come from by themselves, for staff with Django's permissions for sources."""

    tag = "Sources"
    queryset = Source.objects.select_related("collection").order_by("pk")
    lookup_value_converter = "int"
    serializer_class = SourceSerializer
    permission_classes = [StaffWithPermission]
    key_scopes = reading_and_writing((Scope.DOCUMENTS_WRITE,), (Scope.ADMIN,))
    parser_classes = [JSONParser]
    pagination_class = Pagination

    def get_queryset(self) -> QuerySet[Source]:
        return super().get_queryset().filter(collection__in=source_collections(self.request.user))

    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Change what is sent; settings that are not sent stay."""
        serializer = self.get_serializer(self.get_object(), data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        serializer.save()
        return Response(serializer.data)

    @extend_schema(
        parameters=[OpenApiParameter("documents", str, enum=["keep", "remove"], required=True)],
        responses={204: None, 409: ProblemSerializer},
    )
    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Delete a source; `documents` says whether what came from it stays. 409 when it may not be removed now."""
        source = self.get_object()
        wanted = request.query_params.get("documents", "")
        if wanted not in ("keep", "remove"):
            raise ValidationError({"documents": ["This must be keep or remove."]})
        try:
            sync_runs.delete(source, with_documents=wanted == "remove")
        except DocumentRejected as error:
            return Response({"detail": str(error)}, status=status.HTTP_409_CONFLICT)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses={202: SourceRunSerializer, 409: ProblemSerializer})
    @action(detail=True, methods=["post"], **_BUTTON)
    def sync(self, request: Request, pk: str = "") -> Response:
        """Begin a run now; 409 while one is under way."""
        return self._begin()

    @extend_schema(request=None, responses={202: SourceRunSerializer, 409: ProblemSerializer})
    @action(detail=True, methods=["post"], **_BUTTON)
    def preview(self, request: Request, pk: str = "") -> Response:
        """Find out what the next run would do; its result is among the runs."""
        return self._begin(is_preview=True)

    @extend_schema(request=None, responses={202: SourceRunSerializer, 409: ProblemSerializer})
    @action(detail=True, methods=["post"], **_BUTTON)
    def remove(self, request: Request, pk: str = "") -> Response:
        """Agree to the removals that wait, and begin a run."""
        return self._begin(may_remove=True)

    @extend_schema(request=None, responses=SourceSerializer)
    @action(detail=True, methods=["post"], **_BUTTON)
    def pause(self, request: Request, pk: str = "") -> Response:
        """Stop the run that is under way, and begin no other by the schedule."""
        source = self.get_object()
        sync_runs.pause(source)
        return Response(self.get_serializer(source).data)

    @extend_schema(request=None, responses=SourceSerializer)
    @action(detail=True, methods=["post"], **_BUTTON)
    def resume(self, request: Request, pk: str = "") -> Response:
        """Go on by the schedule."""
        source = self.get_object()
        sync_runs.resume(source)
        return Response(self.get_serializer(source).data)

    @extend_schema(responses=SourceRunSerializer(many=True))
    @action(detail=True, methods=["get"], url_path="runs")
    def list_runs(self, request: Request, pk: str = "") -> Response:
        """The runs, newest first; previews are among them."""
        page: Any = self.paginate_queryset(self.get_object().runs.all())  # type: ignore[arg-type]
        return self.get_paginated_response(SourceRunSerializer(page, many=True).data)

    def _begin(self, **wanted: bool) -> Response:
        try:
            run = sync_runs.ask_for(self.get_object(), **wanted)
        except sync_runs.RunRefused as error:
            return Response({"detail": str(error)}, status=status.HTTP_409_CONFLICT)
        return Response(SourceRunSerializer(run).data, status=status.HTTP_202_ACCEPTED)
