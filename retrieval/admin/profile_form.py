"""The form of a search profile: a field for each setting that :mod:`retrieval.profile_settings` declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_lazy as _l

from retrieval.admin.profile_fields import setting_field
from retrieval.models import SearchProfile
from retrieval.profile_json import changes
from retrieval.profile_settings import NO_RERANKER, SETTINGS, ImproperProfile, ProfileSettings
from retrieval.setting import SECTIONS
from retrieval.types import SearchMethod

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

    ``starting_point`` is what the settings are filled in with.
    """

    starting_point = ProfileSettings()

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text=_("What this version is to try, or why it is better; for the list of versions."),
    )

    class Meta:
        model = SearchProfile
        fields = IDENTITY
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        filled_in = {name: getattr(self.starting_point, name) for name in SETTINGS}
        kwargs["initial"] = {**filled_in, **(kwargs.get("initial") or {})}
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
            raise forms.ValidationError(_t("The site has no reranker of that name any more."))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        names = [name for name in SETTINGS if name in self.fields]
        if not names or any(name in self.errors for name in names):
            return cleaned
        values = {name: cleaned[name] for name in names}
        try:
            self.profile_settings = replace(self.starting_point, **{**values, "method": SearchMethod(values["method"])})
        except ImproperProfile as error:
            for name, message in error.errors.items():
                self.add_error(name, f"This {message}.")
        return cleaned


# For Django's metaclass a form's fields are attributes of its class; these come from the settings' declaration.
for _name in SETTINGS:
    SearchProfileForm.declared_fields[_name] = SearchProfileForm.base_fields[_name] = setting_field(_name)


def differences(before: ProfileSettings, after: ProfileSettings) -> list[tuple[str, str, str]]:
    """The settings that differ, each with both values, in the words of the form."""
    return [
        (setting_label(one.name), setting_value(one.name, one.before), setting_value(one.name, one.after))
        for one in changes(before, after)
    ]


def setting_label(name: str) -> str:
    """A setting as the form calls it; of a class's weights, with the class."""
    name, _dot, query_class = name.partition(".")
    label = _t(SETTINGS[name].label)
    return f"{label}: {query_class}" if query_class else label


def setting_value(name: str, value: Any) -> str:
    """A value as JSON has it, for people."""
    match value:
        case None:
            return _t(SETTINGS[name].when_empty)
        case bool():
            return _t("yes") if value else _t("no")
        case Mapping():
            return ", ".join(f"{retriever} {weight:g}" for retriever, weight in value.items())
        case list():
            return "; ".join(f"{b['key']}={b['value']} {b['weight']:+g}" for b in value) or _t("none")
        case float():
            return f"{value:g}"
    return str(value)


def _reranker_label(name: str) -> str:
    if name == NO_RERANKER:
        return _t("none: the fused order stands")
    return name if name in settings.RERANKERS else _t("%s (not there any more)") % name
