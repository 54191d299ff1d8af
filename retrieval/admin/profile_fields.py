"""Form fields for the settings of a search profile."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_lazy as _l

from retrieval.profile_settings import LARGEST_WEIGHT, SETTINGS, TYPES
from retrieval.search.profile_comparison import RETRIEVER_NAMES
from retrieval.types import MetadataBoost, QueryClass, Retriever, RetrieverWeights

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
