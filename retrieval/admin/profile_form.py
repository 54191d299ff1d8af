"""The form of a search profile: a field for each setting that :mod:`retrieval.profile_settings` declares."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_lazy as _l

from retrieval.models import SearchProfile
from retrieval.profile_settings import (
    LARGEST_WEIGHT,
    NO_RERANKER,
    SECTIONS,
    SETTINGS,
    TYPES,
    ImproperProfile,
    ProfileSettings,
    changes,
)
from retrieval.search.profile_comparison import RETRIEVER_NAMES
from retrieval.types import MetadataBoost, QueryClass, Retriever, RetrieverWeights, SearchMethod

# Form fields for the settings of a search profile.

# Rows for new boosts below those there are.
EMPTY_ROWS = 3

CLASS_NAMES = {
    QueryClass.CONCEPTUAL: _("conceptual"),
    QueryClass.CODE: _("code"),
    QueryClass.TROUBLESHOOTING: _("troubleshooting"),
    QueryClass.COMPARISON: _("comparison"),
    QueryClass.DEFAULT: _("any other"),
}


class SiteTemplateMixin:
    """Renders a widget from the site's own templates, where forms look in those of the apps only."""

    def _render(self, template_name: str, context: dict[str, Any], renderer: Any = None) -> SafeString:
        return mark_safe(render_to_string(template_name, context))  # noqa: S308  (a rendered template)


def _weight_input() -> forms.NumberInput:
    return forms.NumberInput(attrs={"step": "any", "min": 0, "max": LARGEST_WEIGHT})


def _weight_field() -> forms.FloatField:
    return forms.FloatField(min_value=0, max_value=LARGEST_WEIGHT, required=False)


class WeightsWidget(SiteTemplateMixin, forms.MultiWidget):
    template_name = "admin/retrieval/searchprofile/_weights.html"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({retriever.value: _weight_input() for retriever in RETRIEVER_NAMES}, attrs)

    def decompress(self, value: RetrieverWeights | None) -> list[float | None]:
        return [None, None] if value is None else [value.of(retriever) for retriever in RETRIEVER_NAMES]

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["inputs"] = list(zip(RETRIEVER_NAMES.values(), context["widget"]["subwidgets"], strict=True))
        return context


class WeightsField(forms.MultiValueField):
    """:class:`RetrieverWeights`, or None when both are left empty."""

    widget = WeightsWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            [_weight_field() for _retriever in RETRIEVER_NAMES], required=False, require_all_fields=False, **kwargs
        )

    def compress(self, data_list: list[float | None]) -> RetrieverWeights | None:
        return None if all(number is None for number in data_list) else _weights(data_list)


class ClassWeightsWidget(SiteTemplateMixin, forms.MultiWidget):
    """A table: a row for each class of questions, a column for each retriever."""

    template_name = "admin/retrieval/searchprofile/_class_weights.html"

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        names = [
            f"{query_class.value}_{retriever.value}" for query_class in CLASS_NAMES for retriever in RETRIEVER_NAMES
        ]
        super().__init__({name: _weight_input() for name in names}, attrs)

    def decompress(self, value: Mapping[QueryClass, RetrieverWeights] | None) -> list[float | None]:
        if value is None:
            return [None] * len(self.widgets)
        return [value[query_class].of(retriever) for query_class in CLASS_NAMES for retriever in RETRIEVER_NAMES]

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        inputs = iter(context["widget"]["subwidgets"])
        context["retrievers"] = list(RETRIEVER_NAMES.values())
        context["rows"] = [
            (label, [(label_of_retriever, next(inputs)) for label_of_retriever in RETRIEVER_NAMES.values()])
            for label in CLASS_NAMES.values()
        ]
        return context


class ClassWeightsField(forms.MultiValueField):
    """Weights for every class of questions."""

    widget = ClassWeightsWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            [_weight_field() for _class in CLASS_NAMES for _retriever in RETRIEVER_NAMES],
            require_all_fields=False,
            **kwargs,
        )

    def compress(self, data_list: list[float | None]) -> dict[QueryClass, RetrieverWeights]:
        weights, errors = {}, []
        for place, (query_class, label) in enumerate(CLASS_NAMES.items()):
            try:
                weights[query_class] = _weights(data_list[len(RETRIEVER_NAMES) * place :][: len(RETRIEVER_NAMES)])
            except ValidationError as error:
                errors += [f"{label}: {message}" for message in error.messages]
        if errors:
            raise ValidationError(errors)
        return weights


def _weights(numbers: Sequence[float | None]) -> RetrieverWeights:
    by_retriever = dict(zip(RETRIEVER_NAMES, numbers, strict=True))
    vector, lexical = by_retriever[Retriever.VECTOR], by_retriever[Retriever.LEXICAL]
    if vector is None or lexical is None:
        raise ValidationError(_t("Give a weight for both retrievers; 0 leaves a retriever out."))
    if vector + lexical == 0:
        raise ValidationError(_t("One of the two weights must be more than 0."))
    return RetrieverWeights(vector=vector, lexical=lexical)


class BoostsWidget(SiteTemplateMixin, forms.Widget):
    """Rows of key, value and weight, with empty ones to fill in."""

    template_name = "admin/retrieval/searchprofile/_boosts.html"
    parts = ("key", "value", "weight")
    use_fieldset = True

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[tuple[str, ...]]:
        columns = [data.getlist(f"{name}_{part}") if hasattr(data, "getlist") else [] for part in self.parts]
        return [row for row in zip(*columns, strict=False) if any(cell.strip() for cell in row)]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}_key" not in data

    def id_for_label(self, id_: str | None) -> str:
        return ""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, None, attrs)
        rows = [_as_row(boost) if isinstance(boost, MetadataBoost) else boost for boost in value or ()]
        context["rows"] = [*rows, *[("", "", "")] * EMPTY_ROWS]
        return context


class BoostsField(forms.Field):
    """Metadata boosts. A value that reads as a number, true or false is one; in quotation marks it is text."""

    widget = BoostsWidget

    def clean(self, value: Any) -> tuple[MetadataBoost, ...]:
        boosts, errors = [], []
        for number, row in enumerate(value or (), start=1):
            try:
                boosts.append(_boost(*row))
            except ValidationError as error:
                errors += [_t("Row %(number)d: %(error)s") % {"number": number, "error": e} for e in error.messages]
        if errors:
            raise ValidationError(errors)
        return tuple(boosts)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return [_as_row(boost) for boost in initial or ()] != list(data or ())


def _boost(key: str, value: str, weight: str) -> MetadataBoost:
    key = forms.CharField(max_length=200, label=_t("key")).clean(key)
    value = forms.CharField(max_length=500).clean(value)
    number = forms.FloatField(min_value=-10, max_value=10).clean(weight)
    if number == 0:
        raise ValidationError(_t("A weight of 0 changes nothing."))
    return MetadataBoost(key=key, value=_scalar(value), weight=number)


def _scalar(text: str) -> str | int | float | bool:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if isinstance(value, (str, int, float)) else text


def _as_row(boost: MetadataBoost) -> tuple[str, str, str]:
    text = boost.value if isinstance(boost.value, str) else json.dumps(boost.value)
    if isinstance(boost.value, str) and _scalar(text) != text:
        text = json.dumps(boost.value, ensure_ascii=False)
    return boost.key, text, f"{boost.weight:g}"


def setting_field(name: str) -> forms.Field:
    """The form field of a setting, by its type and bounds. Choices are for the form to fill in."""
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
        case "RetrieverWeights":
            return WeightsField(**options)
        case "Mapping[QueryClass, RetrieverWeights]":
            return ClassWeightsField(**options)
    return BoostsField(required=False, **options)


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
            raise forms.ValidationError(_t("The site no longer has a reranker of this name."))
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
