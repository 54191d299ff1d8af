"""Check the requests of programs that send documents, and describe the responses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import FlagField, KnownFieldsOnly, NameField, TextField
from retrieval.api.serializers import DocumentSerializer, MetadataObjectField
from retrieval.models import PushedItem
from retrieval.search.metadata_filters import parse_metadata
from retrieval.sources.pushes import EXTENSIONS, LONGEST_ID

# The time of a pushed change may be this far in the future, because clocks differ a little. After a change with a later
# time, all new changes would seem older and be refused.
FURTHEST_AHEAD = timedelta(days=1)
MOST_ITEMS = 100


class MomentField(serializers.DateTimeField):
    """A field for a time with its zone, which must not be far in the future."""

    def to_internal_value(self, value: Any) -> datetime:
        try:
            moment = super().to_internal_value(value).astimezone(UTC)
        except (OverflowError, TypeError):
            self.fail("invalid", format="YYYY-MM-DDThh:mm:ssZ")
        if moment > timezone.now() + FURTHEST_AHEAD:
            raise serializers.ValidationError("This is more than a day ahead: check the clock of the program.")
        return moment


class ReadersSerializer(KnownFieldsOnly):
    users = serializers.ListField(
        child=TextField(max_length=254),
        required=False,
        max_length=200,
        help_text="Mail addresses that accounts have confirmed.",
    )
    groups = serializers.ListField(child=TextField(max_length=150), required=False, max_length=200)
    everybody = FlagField(required=False, default=False, help_text="All readers of the collection.")


@extend_schema_field(ReadersSerializer)
class ReadersField(serializers.Field[dict[str, Any], Any, Any, Any]):
    """The permitted readers, as a JSON object. A form sends the object as text."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        readers = ReadersSerializer(data=parse_metadata(data) if isinstance(data, str) else data)
        readers.is_valid(raise_exception=True)
        validated: dict[str, Any] = readers.validated_data
        return validated

    def to_representation(self, value: Any) -> Any:
        return value


class ExternalIdField(TextField):
    """A field for the id that a program gives an item. Blanks at its ends are part of the id."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=LONGEST_ID, trim_whitespace=False, **kwargs)


class _PushSerializer(KnownFieldsOnly):
    title = TextField(required=False, allow_blank=True, max_length=500, help_text="Empty: the title in the content.")
    url = serializers.URLField(
        required=False, allow_blank=True, max_length=1000, help_text="Where readers find the original."
    )
    changed_at = MomentField(
        required=False, allow_null=True, help_text="When it changed there. One older than the stored time is refused."
    )
    metadata = MetadataObjectField(required=False)
    readers = ReadersField(
        required=False,
        help_text="Who of the collection's readers may read it. Unknown names admit no one; left out: as before.",
    )


class PushTextSerializer(_PushSerializer):
    text = TextField(trim_whitespace=False)
    content_type = NameField(choices=list(EXTENSIONS), default="text/markdown", help_text="What the text is.")


class PushFileSerializer(_PushSerializer):
    file = serializers.FileField(help_text="Its name shows the format.")


class PushOperationSerializer(PushTextSerializer):
    """One item of a batch. To store the item, ``text`` is required; to delete it, ``text`` must be missing."""

    action = NameField(choices=["put", "delete"], default="put")
    external_id = ExternalIdField()
    text = TextField(required=False, trim_whitespace=False, help_text="Needed for a put.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["action"] == "put" and "text" not in attrs:
            raise serializers.ValidationError({"text": ["This field is required."]})
        return attrs


class PushBatchSerializer(KnownFieldsOnly):
    items = PushOperationSerializer(many=True, max_length=MOST_ITEMS, allow_empty=False)  # type: ignore[call-arg]  # the stubs lack max_length


class AnyBatchSerializer(KnownFieldsOnly):
    """A batch whose items are not checked here, so that one invalid item does not refuse the batch."""

    items = serializers.ListField(max_length=MOST_ITEMS, allow_empty=False)


class PushedItemSerializer(serializers.ModelSerializer[PushedItem]):
    result = serializers.ChoiceField(choices=PushedItem.Result.choices, help_text="What the last request did.")
    key = serializers.CharField(help_text="The first letters of the key that sent it.")
    document = DocumentSerializer(allow_null=True, help_text="Null after a deletion.")

    class Meta:
        model = PushedItem
        fields = ["external_id", "result", "changed_at", "sent_at", "key", "document"]
        read_only_fields = fields


class PushOutcomeSerializer(serializers.Serializer[Any]):
    external_id = serializers.CharField()
    result = serializers.ChoiceField(choices=[*PushedItem.Result.values, "outdated", "refused"])
    status = serializers.IntegerField(help_text="The status that this item alone would have got.")
    document = serializers.IntegerField(allow_null=True, help_text="The document's id.")
    error = serializers.CharField(help_text="Why it was refused; otherwise empty.")


class PushBatchResponseSerializer(serializers.Serializer[Any]):
    results = PushOutcomeSerializer(many=True, help_text="In the order of the items.")
