import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dataclass_json import to_json
from retrieval.admin.profile_differences import describe_differences
from retrieval.profile_settings import SETTINGS, ImproperProfile, ProfileSettings, from_json
from retrieval.types import MetadataBoost, QueryClass, RetrieverWeights, SearchMethod

weights = st.builds(RetrieverWeights, vector=st.floats(0, 100), lexical=st.floats(0.001, 100))
profiles = st.builds(
    ProfileSettings,
    method=st.sampled_from(SearchMethod),
    weights=st.none() | weights,
    class_weights=st.fixed_dictionaries(dict.fromkeys(QueryClass, weights)),
    rrf_k=st.integers(1, 10_000),
    top_k=st.integers(1, 50),
    depth=st.integers(50, 200),
    score_threshold=st.none() | st.floats(-1000, 1000),
    fuzzy=st.booleans(),
    reranker=st.sampled_from(["none", "cross_encoder", "http"]),
    rerank_weight=st.none() | st.floats(0, 10),
    metadata_boosts=st.lists(
        st.builds(
            MetadataBoost,
            key=st.text(min_size=1),
            value=st.text() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
            weight=st.floats(-10, 10),
        ),
        max_size=3,
    ).map(tuple),
    context_budget_tokens=st.integers(1, 8000),
)


@given(profiles)
def test_what_is_stored_comes_back(profile):
    assert from_json(json.loads(json.dumps(to_json(profile)))) == profile


def test_what_an_old_version_does_not_name_has_its_default():
    assert from_json({}) == ProfileSettings()
    assert from_json({"method": "rrf", "top_k": 5}) == ProfileSettings(method=SearchMethod.RRF, top_k=5)


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.bounds])
def test_every_number_has_its_range(name):
    low, high = SETTINGS[name].bounds
    for value in (low, high):
        # The depth goes along, so that no other rule is broken.
        settings = {"depth": 200, "top_k": 1, name: int(value) if value == int(value) else value}
        assert to_json(from_json(settings))[name] == value
    for value in (low - 1, high + 1, float("nan"), float("inf"), [], {}):
        with pytest.raises(ImproperProfile) as raised:
            from_json({name: value})
        assert set(raised.value.errors) == {name}
        assert raised.value.errors[name]


HALF = {"vector": 0.5, "lexical": 0.5}
BOOST = {"key": "department", "value": "surgery", "weight": 1}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("method", "magic", "not a valid SearchMethod"),
        ("weights", {"vector": 1}, "lexical"),
        ("weights", {"vector": -1, "lexical": 1}, "non-negative"),
        ("weights", {"vector": 0, "lexical": 0}, "not both zero"),
        ("class_weights", {"code": HALF}, "no weights for conceptual, troubleshooting, comparison, default"),
        ("top_k", 51, "not be larger than the depth of 50"),
        ("metadata_boosts", ["surgery"], "cannot be ['surgery']"),
        ("metadata_boosts", [{**BOOST, "weight": 11}], "between -10 and 10"),
        ("metadata_boosts", [{**BOOST, "key": ""}], "needs a key"),
        ("metadata_boosts", [{**BOOST, "value": []}], "is a text, a number"),
    ],
)
def test_an_impossible_value_is_named(name, value, told):
    with pytest.raises(ImproperProfile) as raised:
        from_json({name: value})
    assert set(raised.value.errors) == {name}
    assert told in raised.value.errors[name]
    assert str(raised.value).startswith(f"{name}: ")


def test_unknown_settings_are_named_with_all_other_errors():
    with pytest.raises(ImproperProfile) as raised:
        from_json({"topk": 3, "depth": 0, "method": "magic"})
    assert raised.value.errors["topk"] == "is not a setting"
    assert set(raised.value.errors) == {"topk", "depth", "method"}


def test_differences_name_what_differs_in_order():
    before = ProfileSettings(method=SearchMethod.ZSCORE)
    code = {**before.class_weights, QueryClass.CODE: RetrieverWeights(1, 0)}
    boosts = (MetadataBoost("year", 2025, 1.5),)
    after = ProfileSettings(
        method=SearchMethod.ADAPTIVE, class_weights=code, rerank_weight=None, fuzzy=False, metadata_boosts=boosts
    )
    assert describe_differences(before, after) == [
        ("Method", "zscore", "adaptive"),
        ("Weights by class of question: code", '{"vector": 0.5, "lexical": 0.5}', '{"vector": 1, "lexical": 0}'),
        ("Forgive typing errors", "yes", "no"),
        ("Weight of the reranker", "0.5", "decides alone"),
        ("Metadata boosts", "[]", '[{"key": "year", "value": 2025, "weight": 1.5}]'),
    ]
    assert describe_differences(after, after) == []
