import base64

import pytest
from django.core.cache import cache
from django.urls import reverse

from tests.support.hashers import CountingHasher
from tests.support.keys import key_of
from tests.support.people import make_superuser


@pytest.fixture(autouse=True)
def hashes(settings):
    settings.PASSWORD_HASHERS = ["tests.support.hashers.CountingHasher"]
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 0}
    cache.clear()
    CountingHasher.reset()
    return CountingHasher


@pytest.fixture
def ada(db):
    return make_superuser("ada", password="the right password")


@pytest.fixture
def key(ada):
    return key_of(ada)


def basic(client, name, password, address="203.0.113.7", **extra):
    credentials = base64.b64encode(f"{name}:{password}".encode()).decode()
    return client.get(
        "/api/v1/conversations/", REMOTE_ADDR=address, headers={"Authorization": f"Basic {credentials}", **extra}
    )


def form(client, name, password, address="203.0.113.7"):
    return client.post(
        reverse("admin:login"), {"username": name, "password": password, "next": "/admin/"}, REMOTE_ADDR=address
    )


def token(client, key, address="203.0.113.7", path="/api/v1/conversations/"):
    scheme = "Bearer" if path.startswith("/v1/") else "Token"
    return client.get(path, REMOTE_ADDR=address, headers={"Authorization": f"{scheme} {key}"})
