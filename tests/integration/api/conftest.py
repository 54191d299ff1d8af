import json

import pytest
from rest_framework.test import APIClient

from tests.support.libraries import remembered
from tests.support.people import make_superuser

QUESTION = "How many days of paid holiday does an employee have?"


def read_events(raw):
    """Id, name and payload of each event of a stream."""
    events = []
    for block in raw.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            events.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return events


@pytest.fixture
@remembered
def handbook(collection, ingest):
    ingest(collection, "holidays.md", "# Holidays\n\nEvery employee has 25 days of paid holiday a year.\n")
    return collection


@pytest.fixture
def api():
    """Yield the client of a program that has no account and keeps no cookies."""
    client = APIClient(raise_request_exception=False)
    yield client
    client.cookies.clear()


@pytest.fixture
def staff(db):
    return make_superuser("editor", password="a long password")


@pytest.fixture
def staff_api(staff):
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(staff)
    return client
