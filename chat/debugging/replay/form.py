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

from chat.debugging.replay.searching import writers
from retrieval.admin.profiles.fields import setting_field
from retrieval.ranking.plans import weights_for
from retrieval.ranking.profile import NO_RERANKER, SETTINGS, SINGLE_METHODS, ImproperProfile, ProfileSettings
from retrieval.types import QueryClass, RetrieverWeights, SearchMethod

# The settings that can be changed as they are, and what the form calls them.
REPLAYED = {name: setting.replay for name, setting in SETTINGS.items() if setting.replay}
WRITERS = {"": _("no"), "quoted": _("yes, quoted from the documents"), "model": _("yes, by the language model")}


class ReplayForm(forms.Form):
    """The settings of an answer's search, as they were; valid when exactly one of them is another.

    ``changed_settings`` are the settings to search with, ``change`` the setting, with both values, in words.
    """

    vector_weight = forms.FloatField(
        label=_("Vector weight"),
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    boosts = forms.BooleanField(label=_("Boosts"), required=False)
    writer = forms.ChoiceField(label=_("Write the answer too"), required=False)

    def __init__(
        self, data: Mapping[str, Any] | None, *, baseline: ProfileSettings, query_class: QueryClass, prefix: str
    ) -> None:
        self._baseline = baseline
        weights = weights_for(baseline, query_class)
        initial = {
            **{name: getattr(baseline, name) for name in REPLAYED},
            "method": baseline.method.value,
            # The vector retriever's share of the weights that the answer's plan began with.
            "vector_weight": round(weights.vector / (weights.vector + weights.lexical), 3),
            "boosts": bool(baseline.metadata_boosts),
        }
        super().__init__(data, initial=initial, prefix=prefix, label_suffix="", auto_id="%s")
        for name, label in REPLAYED.items():
            self.fields[name] = setting_field(name)
            self.fields[name].label, self.fields[name].help_text = _t(label), ""
        self.order_fields(["method", "vector_weight", *REPLAYED])
        names = dict.fromkeys([NO_RERANKER, *settings.RERANKERS, baseline.reranker])
        choices = {"method": SearchMethod, "reranker": names}
        for name, values in choices.items():
            self.fields[name].choices = [(str(value), str(value)) for value in values]  # type: ignore[attr-defined]
        self.fields["writer"].choices = [(name, WRITERS[name]) for name in ("", *writers())]  # type: ignore[attr-defined]
        if not baseline.metadata_boosts:
            del self.fields["boosts"]
        if baseline.method in SINGLE_METHODS:
            # One retriever alone is asked: its share changes nothing.
            del self.fields["vector_weight"]
        self.changed_settings = baseline
        self.change: tuple[str, str, str] = ("", "", "")

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
            self.changed_settings = self._change_setting(name, cleaned[name])
        except ImproperProfile as error:
            raise ValidationError("; ".join(f"This {message}." for message in error.errors.values())) from error
        before, after = self.initial[name], cleaned[name]
        self.change = (str(self.fields[name].label), _in_words(before), _in_words(after))
        return cleaned

    def _change_setting(self, name: str, value: Any) -> ProfileSettings:
        was = self._baseline
        if name == "method":
            return replace(was, method=SearchMethod(value))
        if name == "vector_weight":
            weights = RetrieverWeights(vector=value, lexical=1 - value)
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
