from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.site import Workers, real_queue


@pytest.fixture
def queue(transactional_db: None) -> Iterator[None]:
    """The queue that workers read, in the test database, empty."""
    with real_queue():
        yield


@pytest.fixture(scope="module")
def workers(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """``workers.running()``: the worker of this module."""
    started = Workers(tmp_path_factory.mktemp("workers"))
    yield started
    started.stop()


@pytest.fixture
def admin(client: Client, admin_user: User) -> Client:
    """The client, signed in as a superuser."""
    client.force_login(admin_user)
    return client
