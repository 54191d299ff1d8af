from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from chat import conf
from chat.answering import completion_client
from retrieval.models import Collection, Document
from tests.support.asking import PUMP, Gated, client_of
from tests.support.model_server import ModelServer, model_server
from tests.support.remembered import remembered


@pytest.fixture
@remembered
def library(collection: Collection, ingest: Callable[..., Document]) -> Collection:
    """A collection with one document, about a pump."""
    ingest(collection, "pump.md", PUMP)
    return collection


@pytest.fixture
def model(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """The server of the site's language model."""
    monkeypatch.setattr(completion_client, "FIRST_PAUSE_SECONDS", 0.01)
    with model_server() as server:
        server.pieces = ["The MX-9920-W ", "weighs 3450 grams [", "1]."]
        settings.OPENAI_BASE_URL, settings.OPENAI_MODEL = server.url, "tiny"
        yield server


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
