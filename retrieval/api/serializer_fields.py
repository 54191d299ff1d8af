from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError as DjangoValidationError
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from retrieval.search.metadata_filters import date_range, parse_metadata, validated_any_of, validated_metadata
from retrieval.types import DateRange

LARGEST_ID = 2**63 - 1
_MOST_NAMES, _LONGEST_NAME = 20, 100
MOST_RANGES = 10


class KnownFieldsOnly(serializers.Serializer[Any]):
    """A body whose unknown fields are refused by name: a field that is misspelt would otherwise have no effect.

    ``ignored_fields`` are accepted and have none.
    """

    ignored_fields: ClassVar[frozenset[str]] = frozenset()

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [str(name) for name in data if name not in self.fields and name not in self.ignored_fields]
            if unknown:
                # Half a surrogate pair cannot be sent back.
                names = [name[:_LONGEST_NAME].encode("utf-8", "replace").decode() for name in unknown[:_MOST_NAMES]]
                raise serializers.ValidationError({name: ["Unknown field."] for name in names}, code="unknown_field")
        return super().to_internal_value(data)


class TextField(serializers.CharField):
    """A string, and nothing that could merely be made into one."""

    default_error_messages = {"invalid": "This must be a string."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class SlugTextField(TextField, serializers.SlugField):
    """A short name; never a number made into one."""


class FlagField(serializers.BooleanField):
    """True or false, and nothing that could be taken for one of them."""

    default_error_messages = {"invalid": "This must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class NameField(serializers.ChoiceField):
    """One of a few names. The refusal lists them, and does not repeat what was sent."""

    def to_internal_value(self, data: Any) -> Any:
        if data == "" and self.allow_blank:
            return ""
        if not isinstance(data, str) or data not in self.choices:
            names = ", ".join(str(name) for name in self.choices)
            raise serializers.ValidationError(f"This must be one of {names}.")
        return data


class TopKField(serializers.IntegerField):
    """How many results: between 1 and what each retriever hands over."""

    default_error_messages = {"invalid": "This must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool):
            self.fail("invalid")
        value = super().to_internal_value(data)
        if not 1 <= value <= settings.RETRIEVAL_DEPTH:
            raise serializers.ValidationError(f"This must lie between 1 and {settings.RETRIEVAL_DEPTH}.")
        return value


@extend_schema_field(OpenApiTypes.OBJECT)
class MetadataObjectField(serializers.Field[dict[str, object], Any, Any, Any]):
    """A JSON object; in a form, its text."""

    def to_internal_value(self, data: Any) -> dict[str, object]:
        try:
            return validated_metadata(parse_metadata(data) if isinstance(data, str) else data)
        except DjangoValidationError as error:
            raise serializers.ValidationError(error.messages) from None

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"type": "object", "additionalProperties": {"type": "array", "items": {}}})
class AnyOfField(serializers.Field[dict[str, list[object]], Any, Any, Any]):
    """A JSON object of lists: for each key, the values of which one is asked for."""

    def to_internal_value(self, data: Any) -> dict[str, list[object]]:
        try:
            return validated_any_of(data)
        except DjangoValidationError as error:
            raise serializers.ValidationError(error.messages) from None


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["field"],
            "properties": {
                "field": {"type": "string", "example": "added"},
                "from": {"type": "string", "format": "date", "nullable": True},
                "to": {"type": "string", "format": "date", "nullable": True},
            },
            "anyOf": [
                {"required": ["from"], "properties": {"from": {"type": "string"}}},
                {"required": ["to"], "properties": {"to": {"type": "string"}}},
            ],
        },
    }
)
class DateRangesField(serializers.Field[list[DateRange], Any, Any, Any]):
    """Ranges of dates, all of which are asked for."""

    def to_internal_value(self, data: Any) -> list[DateRange]:
        if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
            raise serializers.ValidationError(
                'This must be a list of ranges, such as [{"field": "added", "from": "2026-01-01"}].'
            )
        if len(data) > MOST_RANGES:
            raise serializers.ValidationError(f"This must have at most {MOST_RANGES} ranges.")
        try:
            return [_range(each) for each in data]
        except DjangoValidationError as error:
            raise serializers.ValidationError(error.messages) from None


def _range(asked: dict[str, Any]) -> DateRange:
    if unknown := sorted(set(asked) - {"field", "from", "to"}):
        raise serializers.ValidationError(f"A range of dates has field, from and to, and no {unknown[0][:40]!r}.")
    return date_range(asked.get("field"), asked.get("from"), asked.get("to"))
