"""Profiles from before late interaction and compounds were deleted are searched as what is nearest to them."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from retrieval.models import SearchProfile, SearchProfileVersion
from retrieval.profile_settings import ProfileSettings, to_json
from retrieval.types import RetrieverWeights, SearchMethod

pytestmark = pytest.mark.django_db


def test_what_was_deleted_leaves_stored_profiles() -> None:
    profile = SearchProfile.objects.create(name="mine", slug="mine")
    weighted = ProfileSettings(weights=RetrieverWeights(0.5, 0.5), top_k=3)
    gone = {"method": "contrast", "reranker": "maxsim", "neighbour_support": 0.35, "compounds": True}
    old, untouched = SearchProfileVersion.objects.bulk_create(
        SearchProfileVersion(profile=profile, number=number, settings=settings)
        for number, settings in enumerate([to_json(weighted) | gone, to_json(weighted)], start=1)
    )
    migration = import_module("retrieval.migrations.0012_without_token_vectors")
    with connection.schema_editor() as editor:
        migration.adapt_profiles(apps, editor)
    for version in (old, untouched):
        version.refresh_from_db()
    read = old.read()
    assert (read.method, read.weights, read.reranker, read.top_k) == (SearchMethod.ZSCORE, None, "none", 3)
    assert untouched.read() == weighted
