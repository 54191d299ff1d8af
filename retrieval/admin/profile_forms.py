"""The form of a search profile, with a field for each setting in `SETTINGS`."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.dataclass_json import to_json
from retrieval.admin.profile_differences import label_reranker
from retrieval.fusion_methods import METHODS
from retrieval.models import SearchProfile
from retrieval.profile_settings import (
    NO_RERANKER,
    SECTIONS,
    SETTINGS,
    TYPES,
    ImproperProfile,
    ProfileSettings,
    from_json,
)
from retrieval.search.metadata_filters import validate_metadata

EXAMPLES = {
    "weights": '{"vector": 0.6, "lexical": 0.4}',
    "metadata_boosts": '[{"key": "department", "value": "sales", "weight": 0.5}]',
}


class JSONSettingField(forms.JSONField):
    """A field for a setting with several values, which the user types as JSON."""

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)

    def clean(self, value: Any) -> Any:
        given = super().clean(value)
        validate_metadata({"": given})
        return given


def build_setting_field(name: str) -> forms.Field:
    setting = SETTINGS[name]
    options: dict[str, Any] = {"label": _(setting.label), "help_text": _(setting.help_text)}
    if setting.bounds is not None:
        options["min_value"], options["max_value"] = setting.bounds
    match TYPES[name]:
        case "bool":
            return forms.BooleanField(required=False, **options)
        case "int":
            return forms.IntegerField(**options)
        case "float":
            widget = forms.NumberInput(attrs={"step": "any"})
            return forms.FloatField(widget=widget, required=not setting.when_empty, **options)
        case "SearchMethod" | "str":
            return forms.ChoiceField(**options)
    attrs = {"rows": 4 if name == "class_weights" else 2, "cols": 60, "placeholder": EXAMPLES.get(name, "")}
    return JSONSettingField(required=False, widget=forms.Textarea(attrs=attrs), **options)


IDENTITY = ["name", "slug", "description"]


FIELDSETS: list[tuple[Any, dict[str, Any]]] = [
    *(
        (
            _(section),
            {"fields": [name for name, each in SETTINGS.items() if each.section == section], "description": _(about)},
        )
        for section, about in SECTIONS.items()
    ),
    (_("This version"), {"fields": ["note"]}),
]


class SearchProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """A form that edits a search profile and creates its next version.

    ``profile_settings`` is set if the form is valid. ``starting_point`` has the fields' initial values.
    """

    starting_point = ProfileSettings()

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text=_("What this version tries, or why it is better. It is shown in the list of versions."),
    )

    class Meta:
        model = SearchProfile
        fields = IDENTITY
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["initial"] = {**to_json(self.starting_point), **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        self.profile_settings: ProfileSettings | None = None
        if "reranker" in self.fields:
            # A reranker that the site no longer has stays in the list, so that the user sees an error.
            names = dict.fromkeys([NO_RERANKER, *settings.RERANKERS, self.starting_point.reranker])
            self.fields["reranker"].choices = [(name, label_reranker(name)) for name in names]  # type: ignore[attr-defined]
            self.fields["method"].choices = [(method.value, _(each.label)) for method, each in METHODS.items()]  # type: ignore[attr-defined]

    def clean_reranker(self) -> str:
        name: str = self.cleaned_data["reranker"]
        if name not in [NO_RERANKER, *settings.RERANKERS]:
            raise forms.ValidationError(_t("The site no longer has a reranker of this name."))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        names = [name for name in SETTINGS if name in self.fields]
        if not names or any(name in self.errors for name in names):
            return cleaned
        given = {name: cleaned[name] for name in names if cleaned[name] is not None or SETTINGS[name].when_empty}
        try:
            self.profile_settings = from_json(given)
        except ImproperProfile as error:
            for name, message in error.errors.items():
                self.add_error(name, f"This {message}.")
        return cleaned
