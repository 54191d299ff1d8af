"""All settings of a search that an admin can tune. A stored set of them is a search profile.

The checks of values, the admin's form and the table in `docs/search.md` are generated from this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_type_hints

from core import dataclass_json
from retrieval.fusion_methods import METHODS
from retrieval.types import MetadataBoost, QueryClass, RetrieverWeights, SearchMethod

KEPT = object()


@dataclass(frozen=True, slots=True)
class ProfileSetting:
    """The description of one setting of search profiles, in English.

    ``when_empty`` says what None means; if it is empty, None is not allowed. ``methods`` are the search methods that
    use the setting; None means all. ``as_published`` replaces the profile's value if a search method is used as in the
    scientific publication about it; KEPT replaces nothing.
    """

    section: str
    label: str
    help_text: str
    bounds: tuple[float, float] | None = None
    when_empty: str = ""
    methods: frozenset[SearchMethod] | None = None
    as_published: Any = KEPT


def _(text: str) -> str:
    return text


RANKING, CANDIDATES, RERANK = _("Ranking"), _("Candidates"), _("Rerank")
CONTEXT, BOOSTS = _("Context"), _("Boosts")
SECTIONS = {
    RANKING: _("How the results of vector search and lexical search are fused into one list."),
    CANDIDATES: _("How many passages are retrieved, and how many are returned."),
    RERANK: _("A slower model that orders the best candidates again."),
    CONTEXT: _("Which of the passages found are given to the answer."),
    BOOSTS: _("Moves documents with certain metadata up or down."),
}


def define_profile_setting(default: Any, section: str, label: str, help_text: str, **more: Any) -> Any:
    how = {"default_factory": default} if callable(default) else {"default": default}
    return field(**how, metadata={"setting": ProfileSetting(section, label, help_text, **more)})


LARGEST_DEPTH = 200
LARGEST_BUDGET_TOKENS = 8000
LARGEST_BLOCKS = 8
NO_RERANKER = "none"

CLASS_WEIGHTS: dict[QueryClass, RetrieverWeights] = {
    QueryClass.CONCEPTUAL: RetrieverWeights(0.8, 0.2),
    QueryClass.CODE: RetrieverWeights(0.5, 0.5),
    QueryClass.TROUBLESHOOTING: RetrieverWeights(0.6, 0.4),
    QueryClass.COMPARISON: RetrieverWeights(0.6, 0.4),
    QueryClass.DEFAULT: RetrieverWeights(0.7, 0.3),
}

FUSING = frozenset(method for method, each in METHODS.items() if not each.is_single)


class ImproperProfile(ValueError):
    """An error: the settings of a profile are invalid. ``errors`` maps fields to sentences for the admin."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {message}" for name, message in errors.items()))
        self.errors = dict(errors)


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """A search profile: all settings of a search and of the context of an answer. Raises: ImproperProfile."""

    method: SearchMethod = define_profile_setting(
        SearchMethod.ZSCORE, RANKING, _("Method"), _("How the two lists become one.")
    )
    weights: RetrieverWeights | None = define_profile_setting(
        None,
        RANKING,
        _("Weights"),
        _("Weight of each retriever; only their ratio matters. Empty: the method's default. Not used by adaptive."),
        when_empty=_("the method's own"),
        methods=frozenset(method for method in FUSING if METHODS[method].weights is not None),
        as_published=None,
    )
    class_weights: Mapping[QueryClass, RetrieverWeights] = define_profile_setting(
        lambda: dict(CLASS_WEIGHTS),
        RANKING,
        _("Weights by class of question"),
        _("For the method adaptive: the wording of a question decides its class."),
        methods=frozenset(method for method in FUSING if METHODS[method].weights is None),
    )
    rrf_k: int = define_profile_setting(
        60,
        RANKING,
        _("Constant of rrf"),
        _("A passage at rank r is worth 1 / (this + r). The larger, the less the first places stand out."),
        bounds=(1, 10_000),
        methods=frozenset({SearchMethod.RRF}),
        as_published=60,
    )
    both_legs_bonus: float = define_profile_setting(
        0.1,
        RANKING,
        _("Bonus for both retrievers"),
        _("The method weighted adds this to passages that both retrievers found."),
        bounds=(0, 10),
        methods=frozenset(method for method in FUSING if METHODS[method].has_bonus),
        as_published=0.1,
    )
    score_threshold: float | None = define_profile_setting(
        None,
        RANKING,
        _("Least final score"),
        _("Passages with a lower score are not returned. Each method has its own scale. Empty: no threshold."),
        bounds=(-1000, 1000),
        when_empty=_("none"),
        as_published=None,
    )
    fuzzy: bool = define_profile_setting(
        True,
        RANKING,
        _("Forgive typing errors"),
        _("Words that occur in no document are replaced by words that differ in one or two letters."),
    )
    reformulate: bool = define_profile_setting(
        True,
        RANKING,
        _("Reformulate questions"),
        _("Follow-ups are also searched together with the previous questions; misspelt words are corrected."),
        as_published=False,
    )
    top_k: int = define_profile_setting(
        8,
        CANDIDATES,
        _("Passages returned"),
        _("It cannot be more than the depth."),
        bounds=(1, LARGEST_DEPTH),
    )
    depth: int = define_profile_setting(
        50,
        CANDIDATES,
        _("Depth"),
        _("How many passages each retriever returns to the fusion."),
        bounds=(1, LARGEST_DEPTH),
    )
    candidate_multiplier: int = define_profile_setting(
        4,
        CANDIDATES,
        _("Candidates per passage returned"),
        _("The depth is at least this many times the number of passages returned."),
        bounds=(1, 50),
    )
    oversampling: int = define_profile_setting(
        2,
        CANDIDATES,
        _("Oversampling"),
        _("The vector index examines this many times the depth. A higher number is slower and misses fewer passages."),
        bounds=(1, 50),
    )
    reranker: str = define_profile_setting(
        NO_RERANKER,
        RERANK,
        _("Reranker"),
        _("The site's settings define the rerankers."),
        as_published=NO_RERANKER,
    )
    rerank_depth: int = define_profile_setting(
        50,
        RERANK,
        _("Candidates reranked"),
        _("How many passages at the top of the fused list are reranked."),
        bounds=(1, LARGEST_DEPTH),
    )
    rerank_weight: float | None = define_profile_setting(
        0.5,
        RERANK,
        _("Weight of the reranker"),
        _("Weight of its score in the final score. Empty: its score alone decides."),
        bounds=(0, 10),
        when_empty=_("decides alone"),
    )
    rerank_timeout_seconds: float = define_profile_setting(
        2.0,
        RERANK,
        _("Seconds a reranker may take"),
        _("If it takes longer, the order of the fusion is kept."),
        bounds=(0.01, 60),
    )
    context_budget_tokens: int = define_profile_setting(
        4000,
        CONTEXT,
        _("Budget in tokens"),
        _("If the passages do not fit, the least relevant are left out."),
        bounds=(1, LARGEST_BUDGET_TOKENS),
    )
    context_neighbours: int = define_profile_setting(
        1,
        CONTEXT,
        _("Neighbours on each side"),
        _("Passages before and after each hit, added while the budget allows."),
        bounds=(0, 5),
    )
    context_blocks: int = define_profile_setting(
        8, CONTEXT, _("Passages used"), _("At most this many hits go into the context."), bounds=(1, LARGEST_BLOCKS)
    )
    metadata_boosts: tuple[MetadataBoost, ...] = define_profile_setting(
        (),
        BOOSTS,
        _("Metadata boosts"),
        _("The weight is in standard deviations of the scores: 1 is a clear push up, −1 a push down."),
        as_published=(),
    )

    def __post_init__(self) -> None:
        errors = {
            name: f"must lie between {low:g} and {high:g}, not {value}"
            for name, each in SETTINGS.items()
            if each.bounds is not None
            for low, high in [each.bounds]
            for value in [getattr(self, name)]
            if not (is_within(value, low, high) or (value is None and each.when_empty))
        }
        if missing := [query_class.value for query_class in QueryClass if query_class not in self.class_weights]:
            errors["class_weights"] = f"has no weights for {', '.join(missing)}"
        if "top_k" not in errors and "depth" not in errors and self.top_k > self.depth:
            errors["top_k"] = f"must not be larger than the depth of {self.depth}"
        if errors:
            raise ImproperProfile(errors)

    @property
    def is_reranked(self) -> bool:
        return self.reranker != NO_RERANKER

    def use_published_values(self, method: SearchMethod) -> ProfileSettings:
        """Return the settings to use ``method`` as in the scientific publication about it.

        These settings have the method's own weights, no reranker and no boosts.
        """
        published = {name: each.as_published for name, each in SETTINGS.items() if each.as_published is not KEPT}
        return replace(self, method=method, **published)


SETTINGS: Mapping[str, ProfileSetting] = {each.name: each.metadata["setting"] for each in fields(ProfileSettings)}
TYPES: Mapping[str, str] = {each.name: str(each.type).removesuffix(" | None") for each in fields(ProfileSettings)}


def is_within(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def from_json(values: Mapping[str, Any]) -> ProfileSettings:
    """Return the search profile that is stored in ``values``. A missing setting gets its default.

    Raises: ImproperProfile for unknown settings and invalid values.
    """
    if not isinstance(values, Mapping):
        raise ImproperProfile({"settings": "must be an object of settings by name"})
    errors = {str(name): "is not a setting" for name in values if name not in SETTINGS}
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name in SETTINGS:
            try:
                if value is None and not SETTINGS[name].when_empty:
                    raise ValueError("it cannot be empty")
                read[name] = dataclass_json.from_json(_HINTS[name], value)
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
                errors[name] = f"cannot be {value!r}: {error}"
    try:
        profile = ProfileSettings(**read)
    except ImproperProfile as error:
        errors |= error.errors
    if errors:
        raise ImproperProfile(errors)
    return profile


_HINTS = get_type_hints(ProfileSettings)
