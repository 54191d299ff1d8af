"""One form field for each setting of a search profile, with what it does in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.admin.profile_fields import BoostsField, ClassWeightsField, WeightsField
from retrieval.models import SearchProfile
from retrieval.ranking.plans import NO_RERANKER
from retrieval.ranking.profile import OPTIONAL, RANGES, ImproperProfile, ProfileSettings, changes
from retrieval.types import SearchMethod

METHOD_NAMES = {
    SearchMethod.CONTRAST: _("contrast: zscore, with more say for words the clearer their scores tell passages apart"),
    SearchMethod.ZSCORE: _("zscore: both scores, standardised and added"),
    SearchMethod.RRF: _("rrf: reciprocal ranks, added"),
    SearchMethod.LINEAR: _("linear: both scores, scaled to 0–1 and added"),
    SearchMethod.WEIGHTED: _("weighted: linear, with a bonus for what both legs found"),
    SearchMethod.ADAPTIVE: _("adaptive: zscore, weighted by the class of the question"),
    SearchMethod.VECTOR: _("vector: by meaning alone"),
    SearchMethod.LEXICAL: _("lexical: by words alone"),
}

IDENTITY = ["name", "slug", "description"]
FIELDSETS: list[tuple[Any, dict[str, Any]]] = [
    (
        _("Ranking"),
        {
            "fields": [
                "method",
                "weights",
                "class_weights",
                "rrf_k",
                "both_legs_bonus",
                "neighbour_support",
                "score_threshold",
                "fuzzy",
                "compounds",
                "reformulate",
            ],
            "description": _("How the two legs, by meaning (vector) and by words (lexical), become one list."),
        },
    ),
    (
        _("Candidates"),
        {
            "fields": ["top_k", "depth", "candidate_multiplier", "oversampling"],
            "description": _("How many passages are looked at, and how many are returned."),
        },
    ),
    (
        _("Rerank"),
        {
            "fields": ["reranker", "rerank_depth", "rerank_weight", "rerank_timeout_seconds"],
            "description": _("A second, slower look at the best candidates."),
        },
    ),
    (
        _("Context"),
        {
            "fields": ["context_budget_tokens", "context_neighbours", "context_blocks"],
            "description": _("What of the passages found an answer is written from."),
        },
    ),
    (
        _("Boosts"),
        {
            "fields": ["metadata_boosts"],
            "description": _("Documents whose metadata say something are moved up or down."),
        },
    ),
    (_("This version"), {"fields": ["note"]}),
]


def _number(name: str, label: Any, help_text: Any, *, whole: bool = True) -> forms.IntegerField:
    """A number within the bounds that the profile itself has for it."""
    low, high = RANGES[name]
    options: dict[str, Any] = {"label": label, "help_text": help_text, "required": name not in OPTIONAL}
    if whole:
        return forms.IntegerField(min_value=int(low), max_value=int(high), **options)
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(min_value=low, max_value=high, widget=widget, **options)


class SearchProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """A profile, and the settings of its next version: ``profile_settings`` once the form is valid.

    ``starting_point`` is what the settings are filled in with.
    """

    starting_point = ProfileSettings()

    method = forms.ChoiceField(
        label=_("Method"),
        choices=[(method.value, name) for method, name in METHOD_NAMES.items()],
        help_text=_("How the two lists become one."),
    )
    weights = WeightsField(
        label=_("Weights"),
        help_text=_("Share of each leg; only their ratio counts. Left empty, the method's own. Not used by adaptive."),
    )
    class_weights = ClassWeightsField(
        label=_("Weights by class of question"),
        help_text=_("For the method adaptive: each question is put into one of these classes by its wording."),
    )
    rrf_k = _number(
        "rrf_k",
        _("Constant of rrf"),
        _("A passage at rank r is worth 1 / (this + r). The larger, the less the first places stand out."),
    )
    both_legs_bonus = _number(
        "both_legs_bonus",
        _("Bonus for both legs"),
        _("Added by the method weighted to what both legs found."),
        whole=False,
    )
    neighbour_support = _number(
        "neighbour_support",
        _("Support of neighbours"),
        _("How far a passage is lifted towards the candidates it resembles; 0 leaves each to itself."),
        whole=False,
    )
    score_threshold = _number(
        "score_threshold",
        _("Least final score"),
        _("Passages below it are not returned; each method has a scale of its own. Left empty, none is dropped."),
        whole=False,
    )
    fuzzy = forms.BooleanField(
        label=_("Forgive typing errors"),
        required=False,
        help_text=_("Words that no document has are replaced by words that differ by a letter or two."),
    )
    compounds = forms.BooleanField(
        label=_("Take compounds apart"),
        required=False,
        help_text=_("In Dutch and German, words also find compounds of them, and compounds their parts."),
    )
    reformulate = forms.BooleanField(
        label=_("Reformulate questions"),
        required=False,
        help_text=_("Filler words are left out, and follow-up questions completed from the conversation."),
    )
    top_k = _number("top_k", _("Passages returned"), _("At most as many as the depth."))
    depth = _number("depth", _("Depth"), _("How many passages each leg hands over."))
    candidate_multiplier = _number(
        "candidate_multiplier",
        _("Candidates per passage returned"),
        _("Where this many times the passages returned is more than the depth, it is the depth."),
    )
    oversampling = _number(
        "oversampling",
        _("Oversampling"),
        _("The vector index looks at this many times the depth: more is slower and misses less."),
    )
    reranker = forms.ChoiceField(label=_("Reranker"), help_text=_("Which ones there are is in the site's settings."))
    rerank_depth = _number("rerank_depth", _("Candidates reranked"), _("The first ones of the fused list."))
    rerank_weight = _number(
        "rerank_weight",
        _("Weight of the reranker"),
        _("How much its opinion adds to the fused score. Left empty, it decides alone."),
        whole=False,
    )
    rerank_timeout_seconds = _number(
        "rerank_timeout_seconds",
        _("Seconds a reranker may take"),
        _("After that the fused order stands."),
        whole=False,
    )
    context_budget_tokens = _number(
        "context_budget_tokens",
        _("Budget in tokens"),
        _("What does not fit is left out, the least relevant first."),
    )
    context_neighbours = _number(
        "context_neighbours",
        _("Neighbours on each side"),
        _("Passages right before and after a hit that are added while the budget allows."),
    )
    context_blocks = _number("context_blocks", _("Passages used"), _("At most this many hits go into the context."))
    metadata_boosts = BoostsField(
        label=_("Metadata boosts"),
        required=False,
        help_text=_(
            "The weight is in standard deviations of the scores: 1 is a clear push up, −1 a push down. "
            "Numbers, true and false are taken as such, and as text in quotation marks."
        ),
    )
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
        filled_in = {name: getattr(self.starting_point, name) for name in ProfileSettings.__dataclass_fields__}
        kwargs["initial"] = {**filled_in, **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        self.profile_settings: ProfileSettings | None = None
        if "reranker" in self.fields:
            # What a version was saved with stays its choice, to be seen when it is there no more.
            names = dict.fromkeys([NO_RERANKER, *settings.RERANKERS, self.starting_point.reranker])
            self.fields["reranker"].choices = [(name, _reranker_label(name)) for name in names]  # type: ignore[attr-defined]

    def clean_reranker(self) -> str:
        name: str = self.cleaned_data["reranker"]
        if name not in [NO_RERANKER, *settings.RERANKERS]:
            raise forms.ValidationError(_t("The site has no reranker of that name any more."))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        names = [name for name in ProfileSettings.__dataclass_fields__ if name in self.fields]
        if not names or any(name in self.errors for name in names):
            return cleaned
        values = {name: cleaned[name] for name in names}
        try:
            self.profile_settings = replace(self.starting_point, **{**values, "method": SearchMethod(values["method"])})
        except ImproperProfile as error:
            for name, message in error.errors.items():
                self.add_error(name, f"This {message}.")
        return cleaned


def differences(before: ProfileSettings, after: ProfileSettings) -> list[tuple[str, str, str]]:
    """The settings that differ, each with both values, in the words of the form."""
    return [
        (setting_label(one.name), setting_value(one.name, one.before), setting_value(one.name, one.after))
        for one in changes(before, after)
    ]


def setting_label(name: str) -> str:
    """A setting as the form calls it; of a class's weights, with the class."""
    name, _dot, query_class = name.partition(".")
    label = str(SearchProfileForm.base_fields[name].label)
    return f"{label}: {query_class}" if query_class else label


def setting_value(name: str, value: Any) -> str:
    """A value as JSON has it, for people."""
    match value:
        case None:
            return {"weights": _t("the method's own"), "rerank_weight": _t("decides alone")}.get(name, _t("none"))
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
