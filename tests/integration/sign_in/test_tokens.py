"""Wrong tokens: counted by address, and refused before any token is looked up."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ragsite.accounts import sign_in_limits
from ragsite.models import SignInCount
from tests.integration.sign_in.conftest import token

pytestmark = pytest.mark.django_db
THERE = "198.51.100.9"


@pytest.mark.parametrize("path", ["/api/v1/conversations/", "/v1/models", "/mcp"])
def test_an_address_with_many_wrong_tokens_is_refused_before_the_lookup(client, key, path):
    for number in range(sign_in_limits.TOKEN_FAILURES):
        assert token(client, f"guess{number}", path=path).status_code == 401
    with CaptureQueriesContext(connection) as queries:
        refused = token(client, key, path=path)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 900
    assert not [query for query in queries if "apikey" in query["sql"]]
    said = refused.json()["error"]["message"] if path.startswith("/v1/") else refused.json()["detail"]
    assert said.startswith("Too many failed attempts to sign in.")


def test_both_protocols_count_together_and_other_addresses_go_on(client, key):
    for number in range(sign_in_limits.TOKEN_FAILURES):
        token(client, "wrong", path="/v1/models" if number % 2 else "/api/v1/conversations/")
    assert token(client, key).status_code == 429
    assert token(client, key, THERE).status_code == 200
    assert client.get("/api/v1/conversations/", REMOTE_ADDR="203.0.113.7").status_code == 200
    assert [row.kind for row in SignInCount.objects.order_by("kind")] == ["known", "tokens"]


def test_a_token_that_was_right_here_goes_on_when_a_neighbour_sends_wrong_ones(client, key):
    assert token(client, key).status_code == 200
    for _ in range(sign_in_limits.TOKEN_FAILURES):
        token(client, "wrong")
    assert token(client, "wrong").status_code == 429
    assert token(client, key).status_code == 200
