"""Choosing the one setting that a replay changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.debugging.replay import writers
from retrieval.ranking.plans import METHOD_WEIGHTS, NO_RERANKER
from retrieval.ranking.profile import RANGES, ImproperProfile, ProfileSettings
from retrieval.types import QueryClass, SearchMethod, Weights

WRITERS = {"": _("no"), "quoted": _("yes, quoted from the documents"), "model": _("yes, by the language model")}


def _whole(name: str, label: Any) -> forms.IntegerField:
    low, high = RANGES[name]
    return forms.IntegerField(label=label, min_value=int(low), max_value=int(high))


class ReplayForm(forms.Form):
    """The settings of an answer's search, as they were; valid when exactly one of them is another.

    ``changed_settings`` are the settings to search with, ``change`` the setting, with both values, in words.
    """

    method = forms.ChoiceField(label=_("Method"), choices=[(method.value, method.value) for method in SearchMethod])
    vector_weight = forms.FloatField(
        label=_("Vector weight"),
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    reranker = forms.ChoiceField(label=_("Reranker"))
    depth = _whole("depth", _("Depth of each leg"))
    top_k = _whole("top_k", _("Passages returned"))
    context_neighbours = _whole("context_neighbours", _("Neighbours in the context"))
    neighbour_support = forms.FloatField(
        label=_("Support of neighbours"),
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    boosts = forms.BooleanField(label=_("Boosts"), required=False)
    reformulate = forms.BooleanField(label=_("Reformulation"), required=False)
    writer = forms.ChoiceField(label=_("Write the answer too"), required=False)

    def __init__(
        self, data: Mapping[str, Any] | None, *, baseline: ProfileSettings, query_class: str, prefix: str
    ) -> None:
        self._baseline = baseline
        self._query_class = QueryClass(query_class) if query_class in set(QueryClass) else QueryClass.DEFAULT
        super().__init__(data, initial=self._as_it_was(), prefix=prefix, label_suffix="", auto_id="%s")
        names = dict.fromkeys([NO_RERANKER, *settings.RERANKERS, baseline.reranker])
        self.fields["reranker"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        self.fields["writer"].choices = [(name, WRITERS[name]) for name in ("", *writers())]  # type: ignore[attr-defined]
        if not baseline.metadata_boosts:
            del self.fields["boosts"]
        if baseline.method in (SearchMethod.LEXICAL, SearchMethod.VECTOR):
            # One retriever alone is asked: its share changes nothing.
            del self.fields["vector_weight"]
        self.changed_settings = baseline
        self.change: tuple[str, str, str] = ("", "", "")

    def _as_it_was(self) -> dict[str, Any]:
        was = self._baseline
        named = ("reranker", "depth", "top_k", "context_neighbours", "neighbour_support", "reformulate")
        return {
            "method": was.method.value,
            "vector_weight": self._vector_weight,
            "boosts": bool(was.metadata_boosts),
            **{name: getattr(was, name) for name in named},
        }

    @property
    def _vector_weight(self) -> float:
        """The vector retriever's share of the weights that the answer's plan began with."""
        was = self._baseline
        if was.method is SearchMethod.ADAPTIVE:
            weights = was.class_weights[self._query_class]
        elif was.weights is None or was.method in (SearchMethod.LEXICAL, SearchMethod.VECTOR):
            weights = METHOD_WEIGHTS[was.method]
        else:
            weights = was.weights
        return round(weights.vector / (weights.vector + weights.lexical), 3)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        changed = [name for name in self.changed_data if name != "writer"]
        if not changed:
            raise ValidationError(_t("Nothing was changed: change one setting to see the difference it makes."))
        if len(changed) > 1:
            labels = ", ".join(str(self.fields[name].label) for name in changed)
            raise ValidationError(_t("Change one setting at a time, to see what it does. Changed: %s.") % labels)
        name = changed[0]
        try:
            self.changed_settings = self._changed(name, cleaned[name])
        except ImproperProfile as error:
            raise ValidationError("; ".join(f"This {message}." for message in error.errors.values())) from error
        before, after = self.initial[name], cleaned[name]
        self.change = (str(self.fields[name].label), _in_words(before), _in_words(after))
        return cleaned

    def _changed(self, name: str, value: Any) -> ProfileSettings:
        was = self._baseline
        if name == "method":
            return replace(was, method=SearchMethod(value))
        if name == "vector_weight":
            weights = Weights(vector=value, lexical=1 - value)
            return replace(was, weights=weights, class_weights=dict.fromkeys(was.class_weights, weights))
        if name == "boosts":
            return replace(was, metadata_boosts=())
        if name == "depth":
            # Else a profile whose multiplier asks for more would search as deep as before.
            return replace(was, depth=value, candidate_multiplier=1)
        return replace(was, **{name: value})


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return _t("on") if value else _t("off")
    return f"{value:g}" if isinstance(value, float) else str(value)
