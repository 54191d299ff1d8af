"""The form of a source: what all have, and the settings of its kind."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from retrieval.admin.document_forms import MetadataField
from retrieval.documents.drafts.editing import reason_not_to_change
from retrieval.models import Source
from retrieval.rights import source_collections
from retrieval.search.metadata_filters import validated_metadata
from retrieval.sources.options import refused_addresses, store_options
from retrieval.sources.protocol import SourceKind


class SourceForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """The base of the form of each kind; see ``form_of``."""

    kind: SourceKind
    user: Any

    class Meta:
        model = Source
        fields = ["collection", "name", "interval_minutes", "metadata"]
        field_classes = {"metadata": MetadataField}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, value in self.instance.options.items():
            self.initial.setdefault(name, value)
        if "collection" in self.fields:
            self.fields["collection"].queryset = source_collections(self.user)  # type: ignore[attr-defined]
        if self.instance.pk is None:
            self.initial.setdefault("interval_minutes", self.kind.interval_minutes)

    def clean_metadata(self) -> dict[str, object]:
        metadata = validated_metadata(self.cleaned_data["metadata"] or {})
        is_changed = self.instance.pk is not None and metadata != self.instance.metadata
        if is_changed and (reason := reason_not_to_change(self.instance.collection)):
            raise ValidationError(reason)
        return metadata

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        collection = self.instance.collection_id or getattr((cleaned or {}).get("collection"), "pk", None)
        namesakes = Source.objects.filter(collection=collection, name=(cleaned or {}).get("name"))
        if namesakes.exclude(pk=self.instance.pk).exists():
            self.add_error("name", ValidationError(_("This collection has a source of this name already.")))
        chosen = (cleaned or {}).get("collection")
        if self.instance.pk is None and chosen is not None and (reason := reason_not_to_change(chosen)):
            self.add_error("collection", ValidationError(reason))
        for name, sentence in refused_addresses(self.kind, cleaned or {}).items():
            self.add_error(name, ValidationError(sentence))
        return cleaned

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if not self.errors:
            self.instance.kind = self.kind.name
            store_options(self.instance, self.kind, self.options())

    def options(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.kind.options.base_fields}


def form_of(kind: SourceKind, user: Any, *, is_new: bool) -> type[SourceForm]:
    """A source stays in its collection: its documents are there."""
    fields = [name for name in SourceForm.Meta.fields if is_new or name != "collection"]
    meta = type("Meta", (SourceForm.Meta,), {"fields": fields})
    return type("SourceFormOfItsKind", (kind.options, SourceForm), {"kind": kind, "user": user, "Meta": meta})


def option_names(kind: SourceKind) -> list[str]:
    return list(kind.options().fields)
