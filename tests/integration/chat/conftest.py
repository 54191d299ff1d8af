from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from chat import conf
from retrieval.models import Collection, Document
from tests.support.asking import PUMP, Gated, client_of
from tests.support.remembered import remembered


@pytest.fixture
@remembered
def library(collection: Collection, ingest: Callable[..., Document]) -> Collection:
    """A collection with one document, about a pump."""
    ingest(collection, "pump.md", PUMP)
    return collection


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> Gated:
    """The language model of all answers."""
    generator = Gated()
    monkeypatch.setattr(conf, "generator", lambda _name: generator)
    return generator


@pytest.fixture
def api() -> APIClient:
    return APIClient()


@pytest.fixture
def owner(db: None) -> User:
    return User.objects.create_user("owner")


@pytest.fixture
def mine(owner: User) -> Client:
    """The browser of ``owner``."""
    return client_of(owner)
