from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import LazySettings

from retrieval.models import Collection, Document
from tests.support.asking import PUMP
from tests.support.faults import short_times


@pytest.fixture
def library(settings: LazySettings, collection: Collection, ingest: Callable[..., Document]) -> Collection:
    short_times(settings)
    ingest(collection, "pump.md", PUMP)
    return collection
