"""A search setting is declared once, and everything that shows settings follows."""

from retrieval.admin.profile_forms import FIELDSETS, SearchProfileForm
from retrieval.fusion_methods import METHODS
from retrieval.profile_settings import SETTINGS, ProfileSettings
from retrieval.types import SearchMethod
from tests.support import settings_table


def test_the_manual_has_every_setting_as_it_is_declared():
    page = settings_table.PAGE.read_text()
    assert settings_table.table() in page, "run `python -m tests.support.settings_table`"
    assert settings_table.methods() in page, "run `python -m tests.support.settings_table`"


def test_the_form_has_a_field_in_a_section_for_every_setting():
    shown = [name for _title, options in FIELDSETS for name in options["fields"]]
    assert sorted(shown) == sorted([*SETTINGS, "note"])
    assert set(METHODS) == set(SearchMethod)
    for name, setting in SETTINGS.items():
        field = SearchProfileForm.base_fields[name]
        assert (field.label, field.help_text) == (setting.label, setting.help_text)
        if setting.bounds is not None:
            assert (getattr(field, "min_value", None), getattr(field, "max_value", None)) == setting.bounds
            assert field.required is not bool(setting.when_empty)


def test_a_method_asked_for_by_name_is_searched_without_what_was_tuned():
    tuned = ProfileSettings(reranker="http", score_threshold=1.0, rrf_k=5, top_k=3)
    published = tuned.use_published_values(SearchMethod.RRF)
    assert (published.method, published.rrf_k, published.score_threshold) == (SearchMethod.RRF, 60, None)
    assert (published.is_reranked, published.reformulate) == (False, False)
    assert published.top_k == 3
