from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from chat import conf
from tests.support.asking import PUMP, Gated, client_of
from tests.support.remembered import library_of

library = library_of({"pump.md": PUMP})


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
