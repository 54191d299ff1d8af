"""A library with sets of questions, of which some say what to find and others what to answer."""

import pytest

from tests.support.evaluation_sets import DOCUMENTS, answers_of, set_of
from tests.support.libraries import library_of

library = library_of(DOCUMENTS)


@pytest.fixture
def evaluation_set(library):
    return set_of(library)


@pytest.fixture
def answers(library):
    return answers_of(library)
