from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.conf import LazySettings

from retrieval.models import Collection, Document
from tests.support.asking import PUMP
from tests.support.faults import short_times
from tests.support.kept_connections import new_connections


@pytest.fixture(autouse=True)
def _new_connections() -> Iterator[None]:
    with new_connections():
        yield


@pytest.fixture
def library(settings: LazySettings, collection: Collection, ingest: Callable[..., Document]) -> Collection:
    short_times(settings)
    ingest(collection, "pump.md", PUMP)
    return collection
