"""Request and response fields of the API. Views respond with dataclasses; response fields only describe them."""

from __future__ import annotations

import math
from typing import Any, TypedDict

from django.conf import settings
from django.db import models
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import LARGEST_ID, FlagField, KnownFieldsOnly, NameField, SlugTextField, TextField
from retrieval.models import Collection, Document, MarkedFilter
from retrieval.models.left_out import KINDS
from retrieval.search.metadata_filters import parse_metadata, validate_metadata
from retrieval.types import DateRange, NumberRange, QueryClass, SearchMethod


@extend_schema_field(OpenApiTypes.OBJECT)
class MetadataObjectField(serializers.Field[dict[str, object], Any, Any, Any]):
    """A field for a JSON object, which a form sends as text."""

    def to_internal_value(self, data: Any) -> dict[str, object]:
        return validate_metadata(parse_metadata(data) if isinstance(data, str) else data)

    def to_representation(self, value: Any) -> Any:
        return value


class DateRangeSerializer(KnownFieldsOnly):
    field = TextField(max_length=200, help_text="`added`, `changed`, or a key of the metadata.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the fields, with `from` and `to` added.

        `from` is a keyword of Python, so it cannot be an attribute of the class.
        """
        days = {name: serializers.DateField(required=False, allow_null=True) for name in ("from", "to")}
        return {**super().get_fields(), **days}

    def validate(self, attrs: dict[str, Any]) -> Any:
        try:
            return DateRange(attrs["field"], attrs.get("from"), attrs.get("to"))
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None


class NumberRangeSerializer(KnownFieldsOnly):
    field = TextField(max_length=200, help_text="A key of the metadata.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        ends = {name: serializers.FloatField(required=False, allow_null=True) for name in ("from", "to")}
        return {**super().get_fields(), **ends}

    def validate(self, attrs: dict[str, Any]) -> Any:
        ends = attrs.get("from"), attrs.get("to")
        if not all(math.isfinite(end) for end in ends if end is not None):
            raise serializers.ValidationError("Numbers must be finite.")
        try:
            return NumberRange(attrs["field"], *ends)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None


LONGEST_QUERY = 2000
LANGUAGE = r"^[A-Za-z]{2,3}(-[A-Za-z]{2,4})?$"
RANKED_BY = [str(method) for method in SearchMethod]
METHODS = ["default", *(method.value for method in SearchMethod)]


class FiltersSerializer(KnownFieldsOnly):
    documents = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        required=False,
        max_length=1000,
        help_text="Only these documents, by id.",
    )
    languages = serializers.ListField(
        child=TextField(max_length=8), required=False, max_length=50, help_text="Only documents in these languages."
    )
    formats = serializers.ListField(
        child=TextField(max_length=100),
        required=False,
        max_length=50,
        help_text="Only documents of these media types, such as `application/pdf`.",
    )
    metadata = MetadataObjectField(required=False, help_text="Only documents whose metadata contain this object.")
    metadata_any = serializers.DictField(
        # Each value becomes two conditions in SQL.
        child=serializers.ListField(min_length=1, max_length=50),
        required=False,
        help_text='Only documents with one of the values for each key: {"department": ["icu", "er"]}.',
    )
    dates = DateRangeSerializer(  # type: ignore[call-arg]  # the stubs lack max_length
        many=True,
        max_length=10,
        required=False,
        help_text=(
            "Only documents whose dates lie in all of these ranges, both days included; one of `from` and `to` may be "
            "left out. `field` is `added`, `changed`, or a key of the metadata whose value is a date (YYYY-MM-DD)."
        ),
    )

    numbers = NumberRangeSerializer(  # type: ignore[call-arg]  # the stubs lack max_length
        many=True,
        max_length=10,
        required=False,
        help_text=(
            "Only documents whose numbers lie in all of these ranges, both ends included; one of `from` and `to` may "
            "be left out. `field` is a key of the metadata. A document without the number does not match."
        ),
    )

    def validate_metadata_any(self, value: dict[str, list[object]]) -> dict[str, object]:
        return validate_metadata(value)


class SearchRequestSerializer(KnownFieldsOnly):
    query = TextField(max_length=LONGEST_QUERY)
    top_k = serializers.IntegerField(
        min_value=1,
        max_value=settings.RETRIEVAL_DEPTH,
        required=False,
        allow_null=True,
        help_text="How many results; empty: the site's default.",
    )
    collection = TextField(
        required=False, allow_blank=True, allow_null=True, max_length=50, help_text="Its short name; empty: all."
    )
    method = NameField(choices=METHODS, required=False, allow_null=True)
    filters = FiltersSerializer(required=False, allow_null=True)
    explain = FlagField(required=False, default=False, help_text="Adds `trace`.")


class OfferedValueSerializer(serializers.Serializer[Any]):
    value = serializers.CharField()
    label = serializers.CharField(help_text="The value in words.")  # type: ignore[assignment]  # as above
    documents = serializers.IntegerField(help_text="How many documents that the caller may read have it.")


class OfferedFilterSerializer(serializers.Serializer[Any]):
    field = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field's own label has this name
    kind = serializers.ChoiceField(choices=MarkedFilter.Kind.choices)
    part = serializers.ChoiceField(
        choices=["languages", "formats", "metadata_any", "dates", "numbers"],
        help_text="The member of `filters` that takes it.",
    )
    values = OfferedValueSerializer(many=True, help_text="Empty for a range.")
    has_more = serializers.BooleanField(help_text="True: these are only the most frequent values.")
    first = serializers.CharField(help_text="Of a range, the lowest date or number; else empty.")
    last = serializers.CharField(help_text="Of a range, the highest.")


class LegScoreSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField(allow_null=True, help_text="From 1; null: not returned by this retriever.")
    score = serializers.FloatField(allow_null=True)
    normalized = serializers.FloatField(allow_null=True)
    weight = serializers.FloatField()
    contribution = serializers.FloatField(help_text="This retriever's part of the result's score.")


class LegScoresSerializer(serializers.Serializer[Any]):
    lexical = LegScoreSerializer()
    vector = LegScoreSerializer()


class ResultDocumentSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    title = serializers.CharField()
    url = serializers.CharField()
    collection = serializers.CharField()


class BoostSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    contribution = serializers.FloatField()


class RerankSerializer(serializers.Serializer[Any]):
    rank_before = serializers.IntegerField()
    score = serializers.FloatField(allow_null=True, help_text="The reranker's own; null: it did not judge the passage.")
    normalized = serializers.FloatField(allow_null=True)
    weight = serializers.FloatField()
    contribution = serializers.FloatField()
    alone = serializers.BooleanField(help_text="True: the score is the reranker's contribution, without the others.")


class ResultSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField()
    score = serializers.FloatField(help_text="The sum of all contributions and `bonus`.")
    bonus = serializers.FloatField()
    boosts = BoostSerializer(many=True)
    rerank = RerankSerializer(allow_null=True)
    chunk_id = serializers.IntegerField()
    document = ResultDocumentSerializer()
    section = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    page_unit = serializers.ChoiceField(choices=["page", "slide"], required=False, help_text="What `page` counts.")
    content = serializers.CharField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    matched_terms = serializers.ListField(child=serializers.CharField())
    legs = LegScoresSerializer()


class SearchResponseSerializer(serializers.Serializer[Any]):
    query_class = serializers.ChoiceField(choices=list(QueryClass))
    search_method = serializers.ChoiceField(choices=RANKED_BY, help_text="The method that really ranked.")
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="What did not answer: `lexical`, `vector`, `rerank`; `unencoded` while vectors are still to be made.",
    )
    results = ResultSerializer(many=True)
    timings_ms = serializers.DictField(child=serializers.FloatField())
    trace = serializers.DictField(required=False)


class LeftOutPartsPayload(TypedDict):
    """Parts of a file that are missing in its text. ``names`` are the names of the first parts, if they have any."""

    kind: str
    count: int
    names: list[str]


class LeftOutSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=list(KINDS))
    count = serializers.IntegerField()
    names = serializers.ListField(child=serializers.CharField(), help_text="The first of them, where they have names.")


class DocumentSerializer(serializers.ModelSerializer[Document]):
    collection = serializers.SlugRelatedField[Collection](slug_field="slug", read_only=True)
    metadata = MetadataObjectField(read_only=True)
    url = serializers.CharField(read_only=True, help_text="Where readers find the original; may be empty.")
    notice = serializers.CharField(read_only=True, help_text="What of the file was not read; empty when all was.")
    left_out = serializers.SerializerMethodField(help_text="What of the file was not read, by kind; `notice` says it.")
    parent = serializers.PrimaryKeyRelatedField[Document](  # type: ignore[assignment]  # named as the model's field
        read_only=True, allow_null=True, help_text="The mail or archive that it came in."
    )

    class Meta:
        model = Document
        fields = [
            "id",
            "collection",
            "source",
            "title",
            "url",
            "media_type",
            "language",
            "metadata",
            "size_bytes",
            "content_hash",
            "status",
            "error",
            "notice",
            "left_out",
            "parent",
            "progress_percent",
            "attempts",
            "chunk_count",
            "instruction_count",
            "created_at",
            "updated_at",
            "ingested_at",
        ]
        read_only_fields = fields

    @extend_schema_field(LeftOutSerializer(many=True))
    def get_left_out(self, document: Document) -> list[LeftOutPartsPayload]:
        return [{"kind": kind, "count": count, "names": names} for kind, names, count in document.left_out]


class UploadSerializer(KnownFieldsOnly):
    """The fields of an upload, except the files, which the view checks one by one."""

    file = serializers.ListField(
        child=serializers.FileField(),
        required=False,
        help_text="Repeat the field for several files. Without one, the page at `url` is fetched once.",
    )
    collection = TextField(max_length=50, help_text="Short name of the collection.")
    source = TextField(  # type: ignore[assignment]  # named as the model's field, not as the base class's attribute
        required=False,
        allow_blank=True,
        max_length=1000,
        help_text="Path to keep the file under, for one file; empty: its name. The same source is a new version.",
    )
    title = TextField(required=False, allow_blank=True, max_length=500, help_text="For one file; empty: its own.")
    url = serializers.URLField(
        required=False, allow_blank=True, max_length=1000, help_text="For one file, or instead of it."
    )
    language = serializers.RegexField(
        LANGUAGE,
        required=False,
        allow_blank=True,
        max_length=8,
        help_text="Such as en; empty: detected.",
        error_messages={"invalid": "This must be a language code, such as en or pt-BR."},
    )
    metadata = MetadataObjectField(required=False)


class AcceptedDocumentSerializer(DocumentSerializer):
    changed = serializers.BooleanField(help_text="False: this very file has been read already.")

    class Meta(DocumentSerializer.Meta):
        fields = [*DocumentSerializer.Meta.fields, "changed"]


class RejectedFileSerializer(serializers.Serializer[Any]):
    file = serializers.CharField()
    error = serializers.CharField()


class UploadResponseSerializer(serializers.Serializer[Any]):
    accepted = AcceptedDocumentSerializer(many=True)
    rejected = RejectedFileSerializer(many=True)


class CollectionSerializer(KnownFieldsOnly, serializers.ModelSerializer[Collection]):
    documents = serializers.IntegerField(read_only=True, source="document_total")
    passages = serializers.IntegerField(read_only=True, source="passage_total")
    languages = serializers.CharField(read_only=True)

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: TextField,
        models.TextField: TextField,
        models.SlugField: SlugTextField,
    }
    # The value may be half a surrogate pair, so the error must not repeat it.
    serializer_choice_field = NameField

    class Meta:
        model = Collection
        fields = [
            "slug",
            "name",
            "description",
            "text_search_configuration",
            "languages",
            "visibility",
            "is_searched_by_name",
            "suggested_questions",
            "documents",
            "passages",
            "created_at",
        ]
