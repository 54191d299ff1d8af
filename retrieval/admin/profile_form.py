"""The form of a search profile: a field for each setting that :mod:`retrieval.profile_settings` declares."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_lazy as _l

from retrieval.models import SearchProfile
from retrieval.profile_settings import (
    CLASS_WEIGHTS,
    LARGEST_WEIGHT,
    NO_RERANKER,
    SECTIONS,
    SETTINGS,
    TYPES,
    ImproperProfile,
    ProfileSettings,
)
from retrieval.types import MetadataBoost, QueryClass, Retriever, RetrieverWeights, SearchMethod

# Weights and boosts are typed as text, in the form in which differences between versions show them.


class NotationField(forms.CharField):
    """A setting in a text notation: ``read`` parses the text, and ``write`` formats the value."""

    def __init__(self, read: Callable[[str], Any], write: Callable[[Any], str], example: str, **kwargs: Any) -> None:
        self.read, self.write = read, write
        attrs = {"rows": example.count("\n") + 1, "cols": 60, "placeholder": example}
        super().__init__(required=False, widget=forms.Textarea(attrs=attrs), **kwargs)

    def prepare_value(self, value: Any) -> str:
        return value if isinstance(value, str) else self.write(value)

    def clean(self, value: Any) -> Any:
        return self.read(super().clean(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.write(initial).split() != (data or "").split()


def read_weights(text: str) -> RetrieverWeights | None:
    """The two weights; None for an empty text. Raises: ValidationError unless both are given."""
    if not text:
        return None
    numbers = dict(part.split(maxsplit=1) for part in text.split(",") if len(part.split()) > 1)
    if set(numbers) != set(Retriever):
        raise ValidationError(_t("Give both weights: vector 0.6, lexical 0.4. A weight of 0 leaves a retriever out."))
    field = forms.FloatField(min_value=0, max_value=LARGEST_WEIGHT)
    weights = {str(name): field.clean(number) for name, number in numbers.items()}
    if not any(weights.values()):
        raise ValidationError(_t("One of the two weights must be more than 0."))
    return RetrieverWeights(**weights)


def write_weights(weights: RetrieverWeights | None) -> str:
    return f"vector {_in_full(weights.vector)}, lexical {_in_full(weights.lexical)}" if weights is not None else ""


def read_class_weights(text: str) -> dict[QueryClass, RetrieverWeights]:
    """The weights by class: in each line a class, a colon and its weights. Raises: ValidationError."""

    def read(line: str) -> tuple[QueryClass, RetrieverWeights]:
        name, _colon, weights = line.partition(":")
        if name.strip() not in set(QueryClass):
            raise ValidationError(_t("There is no question class “%s”.") % name)
        return QueryClass(name.strip()), read_weights(weights.strip() or "-")  # type: ignore[return-value]

    return dict(_read_lines(text, read))


def write_class_weights(weights: Mapping[QueryClass, RetrieverWeights]) -> str:
    return "\n".join(f"{query_class}: {write_weights(weights[query_class])}" for query_class in QueryClass)


def read_boosts(text: str) -> tuple[MetadataBoost, ...]:
    """The boosts: in each line a key, an equals sign, a value and a weight. A value that looks like a number, true or
    false is read as one; in quotation marks it is text. Raises: ValidationError.
    """

    def read(line: str) -> MetadataBoost:
        key, _equals, rest = (part.strip() for part in line.partition("="))
        value, _blank, weight = rest.rpartition(" ")
        if not key or not value:
            raise ValidationError(_t("Write a key, a value and a weight: department = sales 0.5."))
        number = forms.FloatField(min_value=-10, max_value=10).clean(weight)
        if number == 0:
            raise ValidationError(_t("A weight of 0 changes nothing."))
        key = forms.CharField(max_length=200).clean(key)
        return MetadataBoost(key=key, value=_scalar(forms.CharField(max_length=500).clean(value)), weight=number)

    return tuple(_read_lines(text, read))


def write_boosts(boosts: Sequence[MetadataBoost]) -> str:
    def write(value: Any) -> str:
        is_plain = isinstance(value, str) and _scalar(value) == value
        return value if is_plain else json.dumps(value, ensure_ascii=False)

    return "\n".join(f"{boost.key} = {write(boost.value)} {_in_full(boost.weight)}" for boost in boosts)


def _read_lines(text: str, read: Callable[[str], Any]) -> list[Any]:
    found, errors = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            found += [read(line.strip())] if line.strip() else []
        except ValidationError as error:
            errors += [_t("Line %(number)d: %(error)s") % {"number": number, "error": e} for e in error.messages]
    if errors:
        raise ValidationError(errors)
    return found


def _in_full(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _scalar(text: str) -> str | int | float | bool:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if isinstance(value, (str, int, float)) else text


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
        case "RetrieverWeights":
            return NotationField(read_weights, write_weights, "vector 0.6, lexical 0.4", **options)
        case "Mapping[QueryClass, RetrieverWeights]":
            return NotationField(read_class_weights, write_class_weights, write_class_weights(CLASS_WEIGHTS), **options)
    return NotationField(
        read_boosts, write_boosts, "department = sales 0.5\nyear = 2025 1\ncurrent = true -1", **options
    )


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
    """The settings that differ, each with both values, in the words of the form; each class of questions counts as a
    setting.
    """
    rows = []
    for name, setting in SETTINGS.items():
        old, new, label = getattr(before, name), getattr(after, name), _t(setting.label)
        if name == "class_weights":
            changed = [each for each in QueryClass if old[each] != new[each]]
            rows += [(f"{label}: {each}", write_weights(old[each]), write_weights(new[each])) for each in changed]
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
        case RetrieverWeights():
            return write_weights(value)
        case tuple():
            return write_boosts(value).replace("\n", "; ") or _t("none")
    return str(value)


def _reranker_label(name: str) -> str:
    if name == NO_RERANKER:
        return _t("none: the order of the fusion is kept")
    return name if name in settings.RERANKERS else _t("%s (removed)") % name
