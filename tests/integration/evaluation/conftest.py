"""A library with sets of questions, of which some say what to find and others what to answer."""

from __future__ import annotations

import pytest

from retrieval.models import Collection
from tests.support.evaluation_sets import answers_of, fill, set_of
from tests.support.remembered import remembered


@pytest.fixture
@remembered
def library(collection, ingest) -> Collection:
    fill(collection, ingest)
    return collection


@pytest.fixture
def evaluation_set(library):
    return set_of(library)


@pytest.fixture
def answers(library):
    return answers_of(library)
