from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin.widgets import AdminDateWidget
from django.core.validators import RegexValidator
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from core.user_types import AnyUser
from retrieval.documents import formats
from retrieval.documents.drafts.editing import find_reason_not_to_change
from retrieval.documents.file_icons import list_file_kinds, list_icons_by_extension
from retrieval.documents.submission import read_upload
from retrieval.exceptions import DocumentRejected
from retrieval.models import Collection, Document
from retrieval.search.metadata_filters import validate_metadata

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile

validate_language = RegexValidator(
    r"^[A-Za-z]{2,3}(-[A-Za-z]{2,4})?$", _("This must be a language code, such as en or pt-BR.")
)


class DocumentFileInput(forms.ClearableFileInput):
    def build_attrs(
        self, base_attrs: dict[str, object], extra_attrs: dict[str, object] | None = None
    ) -> dict[str, object]:
        return {"accept": formats.list_accepted_files(), **super().build_attrs(base_attrs, extra_attrs)}


class FilesInput(DocumentFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """A field for several files. An empty file is valid here, so that the form accepts the other files."""

    widget = FilesInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_empty_file=True, **kwargs)

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        files = data if isinstance(data, (list, tuple)) else [data]
        return [super(FilesField, self).clean(file, initial) for file in files if file]


def build_upload_context(user: AnyUser, collection: Collection | None = None) -> dict[str, object]:
    if not (user.is_staff and user.has_perm("retrieval.add_document")):
        return {}
    collections = Collection.objects.curated_by(user)
    if collection is not None:
        collections = collections.filter(pk=collection.pk)
    open_ones = [found for found in collections if not find_reason_not_to_change(found)]
    return {"upload_collections": open_ones, **build_drop_zone_context()}


def build_drop_zone_context() -> dict[str, object]:
    return {
        "accepted_files": formats.list_accepted_files(),
        "supported_formats": formats.list_supported_formats(),
        "file_kinds": list_file_kinds(),
        "icons_by_extension": json.dumps(list_icons_by_extension()),
    }


class MetadataField(forms.JSONField):
    widget = forms.Textarea(attrs={"rows": 2})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "required": False})

    def prepare_value(self, value: Any) -> Any:
        return "" if value in (None, {}) else super().prepare_value(value)

    def clean(self, value: Any) -> dict[str, object] | None:
        metadata = super().clean(value)
        return None if metadata is None else validate_metadata(metadata)


class UploadForm(forms.Form):
    collection = forms.ModelChoiceField(
        Collection.objects.none(), label=_("Collection"), error_messages={"required": _("Choose a collection first.")}
    )
    new_collection = forms.CharField(
        label=_("Or a new collection"),
        required=False,
        max_length=200,
        help_text=_("Its name. Only people and groups that you name may ask it, until you open it."),
    )
    file = FilesField(label=_("Files"), help_text=lazy(formats.list_supported_formats, str)(), required=False)
    # the path within an uploaded folder
    source = forms.CharField(required=False, max_length=1000, widget=forms.HiddenInput)
    text = forms.CharField(
        label=_("Text"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Text or Markdown; or a web address and nothing else, whose page is fetched once."),
    )
    text_name = forms.CharField(label=_("Title of the text"), required=False, max_length=200)
    language = forms.CharField(
        label=_("Language"),
        required=False,
        max_length=8,
        validators=[validate_language],
        help_text=_("Such as en; left empty, it is detected."),
    )
    metadata = MetadataField(
        label=_("Metadata"),
        help_text=_(
            "Facts about the documents, for filters and rights: names and values in braces, such as "
            '{"department": "sales"}.'
        ),
    )

    def __init__(self, *args: Any, user: AnyUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["collection"].queryset = Collection.objects.curated_by(user)  # type: ignore[attr-defined]
        if not user.has_perm("retrieval.add_collection"):
            del self.fields["new_collection"]
        elif self.data.get("new_collection", "").strip():
            self.fields["collection"].required = False

    def clean_new_collection(self) -> str:
        name: str = self.cleaned_data["new_collection"]
        if name and self.fields["collection"].queryset.filter(name__iexact=name).exists():  # type: ignore[attr-defined]
            raise forms.ValidationError(_("There is a collection with this name: choose it."))
        return name

    def clean(self) -> dict[str, object] | None:
        cleaned = super().clean() or {}
        if not self.errors and not cleaned["file"] and not cleaned["text"] and not cleaned.get("new_collection"):
            self.add_error("file", _("Choose a file, or write a text or a web address."))
        return cleaned


class DocumentForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """A form to edit a document. The cleaned ``replacement`` is the content of a new file, or None."""

    replacement = forms.FileField(
        label=_("New version of the file"),
        required=False,
        widget=DocumentFileInput,
        help_text=_("Replaces the current file. Until it has been read, the current one is searched."),
    )

    url = forms.URLField(
        label=_("Web address"),
        required=False,
        max_length=1000,
        assume_scheme="https",
        help_text=_("Where readers find the original."),
    )

    class Meta:
        model = Document
        fields = ["title", "url", "language", "metadata", "review_on"]
        widgets = {"review_on": AdminDateWidget}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "language" in self.fields:
            self.fields["language"].validators.append(validate_language)

    def clean_metadata(self) -> dict[str, object]:
        metadata = self.cleaned_data["metadata"]
        return {} if metadata is None else validate_metadata(metadata)

    def clean_replacement(self) -> bytes | None:
        upload = self.cleaned_data["replacement"]
        if not upload:
            return None
        try:
            return read_upload(upload, self.instance.source)
        except DocumentRejected as error:
            raise forms.ValidationError(str(error)) from error
