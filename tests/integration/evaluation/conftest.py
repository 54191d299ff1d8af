"""A library with sets of questions, of which some say what to find and others what to answer."""

from __future__ import annotations

import pytest

from retrieval.documents.drafts import lifecycle
from retrieval.models import Collection, Draft
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


@pytest.fixture
def draft(library) -> Draft:
    """A draft of the library, with all documents copied."""
    found = lifecycle.resume(lifecycle.begin(library).pk)
    assert found is not None
    assert found.status == Draft.Status.OPEN
    return found
