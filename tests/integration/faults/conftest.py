import pytest

from tests.support.asking import PUMP
from tests.support.faults import short_times


@pytest.fixture
def library(settings, collection, ingest):
    short_times(settings)
    ingest(collection, "pump.md", PUMP)
    return collection
