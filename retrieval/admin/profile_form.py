"""The form of a search profile: a field for each setting that :mod:`retrieval.profile_settings` declares."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_lazy as _l

from retrieval import dataclass_json
from retrieval.dataclass_json import to_json
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
from retrieval.search.metadata_filters import validated_metadata
from retrieval.types import QueryClass, RetrieverWeights, SearchMethod

EXAMPLES = {
    "weights": '{"vector": 0.6, "lexical": 0.4}',
    "metadata_boosts": '[{"key": "department", "value": "sales", "weight": 0.5}]',
}


class StructureField(forms.JSONField):
    """A setting of several values, typed as the JSON in which profiles are stored."""

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)

    def clean(self, value: Any) -> Any:
        given = super().clean(value)
        validated_metadata({"": given})
        return given


def setting_field(name: str) -> forms.Field:
    """The form field of a setting, by its type and bounds. The form fills in the choices."""
    setting = SETTINGS[name]
    options: dict[str, Any] = {"label": _l(setting.label), "help_text": _l(setting.help_text)}
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
    return StructureField(required=False, widget=forms.Textarea(attrs=attrs), **options)


METHOD_NAMES = {
    SearchMethod.ZSCORE: _("zscore: both scores, standardised and added"),
    SearchMethod.RRF: _("rrf: reciprocal ranks, added"),
    SearchMethod.LINEAR: _("linear: both scores, scaled to 0–1 and added"),
    SearchMethod.WEIGHTED: _("weighted: linear, with a bonus for what both retrievers found"),
    SearchMethod.ADAPTIVE: _("adaptive: zscore, weighted by the class of the question"),
    SearchMethod.VECTOR: _("vector: by meaning alone"),
    SearchMethod.LEXICAL: _("lexical: by words alone"),
}

IDENTITY = ["name", "slug", "description"]
FIELDSETS: list[tuple[Any, dict[str, Any]]] = [
    *(
        (
            _l(section),
            {"fields": [name for name, each in SETTINGS.items() if each.section == section], "description": _l(about)},
        )
        for section, about in SECTIONS.items()
    ),
    (_("This version"), {"fields": ["note"]}),
]


class SearchProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """A profile, and the settings of its next version: ``profile_settings`` once the form is valid.

    ``starting_point`` has the initial settings.
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
            # What a version was saved with stays its choice, to be seen when it is there no more.
            names = dict.fromkeys([NO_RERANKER, *settings.RERANKERS, self.starting_point.reranker])
            self.fields["reranker"].choices = [(name, _reranker_label(name)) for name in names]  # type: ignore[attr-defined]
            self.fields["method"].choices = [(method.value, name) for method, name in METHOD_NAMES.items()]  # type: ignore[attr-defined]

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
        # What is left empty has its default, unless being empty means something.
        given = {name: cleaned[name] for name in names if cleaned[name] is not None or SETTINGS[name].when_empty}
        try:
            self.profile_settings = from_json(given)
        except ImproperProfile as error:
            for name, message in error.errors.items():
                self.add_error(name, f"This {message}.")
        return cleaned


# For Django's metaclass a form's fields are attributes of its class; these come from the settings' declaration.
for _name in SETTINGS:
    SearchProfileForm.declared_fields[_name] = SearchProfileForm.base_fields[_name] = setting_field(_name)


def differences(before: ProfileSettings, after: ProfileSettings) -> list[tuple[str, str, str]]:
    """The settings that differ, each with both values, in the words of the form; each class of questions counts as a
    setting.
    """
    rows = []
    for name, setting in SETTINGS.items():
        old, new, label = getattr(before, name), getattr(after, name), _t(setting.label)
        if name == "class_weights":
            changed = [each for each in QueryClass if old[each] != new[each]]
            rows += [
                (f"{label}: {each}", _write_value(name, old[each]), _write_value(name, new[each])) for each in changed
            ]
        elif old != new:
            rows.append((label, _write_value(name, old), _write_value(name, new)))
    return rows


def _write_value(name: str, value: Any) -> str:
    match value:
        case None:
            return _t(SETTINGS[name].when_empty)
        case bool():
            return _t("yes") if value else _t("no")
        case float():
            return f"{value:g}"
        case RetrieverWeights() | tuple():
            return json.dumps(dataclass_json.to_json(value), ensure_ascii=False)
    return str(value)


def _reranker_label(name: str) -> str:
    if name == NO_RERANKER:
        return _t("none: the order of the fusion is kept")
    return name if name in settings.RERANKERS else _t("%s (removed)") % name
