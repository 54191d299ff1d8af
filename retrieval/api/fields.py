from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError as DjangoValidationError
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from retrieval.metadata import parse_metadata, validated_metadata

LARGEST_ID = 2**63 - 1


class TextField(serializers.CharField):
    """A string, and nothing that could merely be made into one."""

    default_error_messages = {"invalid": "This must be a string."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class NameField(serializers.ChoiceField):
    """One of a few names. The refusal lists them, and does not repeat what was sent."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            names = ", ".join(str(name) for name in self.choices)
            raise serializers.ValidationError(f"This must be one of {names}.")
        return data


class TopKField(serializers.IntegerField):
    """How many results: between 1 and what each leg hands over."""

    default_error_messages = {"invalid": "This must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool):
            self.fail("invalid")
        value = super().to_internal_value(data)
        if not 1 <= value <= settings.RETRIEVAL_DEPTH:
            raise serializers.ValidationError(f"This must lie between 1 and {settings.RETRIEVAL_DEPTH}.")
        return value


@extend_schema_field(OpenApiTypes.OBJECT)
class MetadataField(serializers.Field[dict[str, object], Any, Any, Any]):
    """A JSON object; in a form, its text."""

    def to_internal_value(self, data: Any) -> dict[str, object]:
        try:
            return validated_metadata(parse_metadata(data) if isinstance(data, str) else data)
        except DjangoValidationError as error:
            raise serializers.ValidationError(error.messages) from None

    def to_representation(self, value: Any) -> Any:
        return value
