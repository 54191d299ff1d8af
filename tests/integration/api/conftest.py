from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient


@pytest.fixture
def api():
    """A program that has no account and keeps no cookies."""
    client = APIClient(raise_request_exception=False)
    yield client
    client.cookies.clear()


@pytest.fixture
def staff(db):
    return User.objects.create_superuser("editor", password="a long password")


@pytest.fixture
def staff_api(staff):
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(staff)
    return client
