import pytest
from rest_framework.test import APIClient

from chat.answering import writers
from tests.support.asking import PUMP, Gated, client_of
from tests.support.libraries import library_of
from tests.support.people import make_reader

library = library_of({"pump.md": PUMP})


@pytest.fixture
def gated(monkeypatch):
    """Replace the language model of all answers."""
    generator = Gated()
    monkeypatch.setattr(writers, "find_generator", lambda _name: generator)
    return generator


@pytest.fixture
def api():
    return APIClient()


@pytest.fixture
def owner(db):
    return make_reader("owner")


@pytest.fixture
def mine(owner):
    return client_of(owner)
