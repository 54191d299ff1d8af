"""Fields and serializers that refuse unexpected input, which DRF would convert or ignore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers

LARGEST_ID = 2**63 - 1


_MOST_NAMES, _LONGEST_NAME = 20, 100


class KnownFieldsOnly(serializers.Serializer[Any]):
    """Base class of request bodies in which unknown fields are errors. Otherwise, a misspelt field would be ignored.

    Fields in ``ignored_fields`` are accepted. With ``ignores_empty``, so are unknown fields without a value, which some
    clients send for all that they could set.
    """

    ignored_fields: ClassVar[frozenset[str]] = frozenset()
    ignores_empty: ClassVar[bool] = False

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [
                str(name)
                for name, value in data.items()
                if name not in self.fields
                and name not in self.ignored_fields
                and not (self.ignores_empty and value in (None, "", [], {}))
            ]
            if unknown:
                # JSON cannot contain half a surrogate pair.
                names = [name[:_LONGEST_NAME].encode("utf-8", "replace").decode() for name in unknown[:_MOST_NAMES]]
                raise serializers.ValidationError({name: ["Unknown field."] for name in names}, code="unknown_field")
        return super().to_internal_value(data)


class TextField(serializers.CharField):
    default_error_messages = {"invalid": "This must be a string."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class SlugTextField(TextField, serializers.SlugField):
    """A text field for a short name, such as a slug."""


class FlagField(serializers.BooleanField):
    default_error_messages = {"invalid": "This must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class NameField(serializers.ChoiceField):
    """A choice field whose error message does not repeat the sent value."""

    def to_internal_value(self, data: Any) -> Any:
        if data == "" and self.allow_blank:
            return ""
        if not isinstance(data, str) or data not in self.choices:
            names = ", ".join(str(name) for name in self.choices)
            raise serializers.ValidationError(f"This must be one of {names}.")
        return data


class ProblemSerializer(serializers.Serializer[Any]):
    detail = serializers.CharField(help_text="One sentence.")
