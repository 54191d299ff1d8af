from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from ragsite.http import text_files
from retrieval.models import Collection, Document

ADDRESS = "/.well-known/security.txt"


def test_the_site_says_where_to_report_a_weakness_once_somebody_is_named(client, settings):
    assert client.get(ADDRESS).status_code == 404
    settings.SECURITY_CONTACT = "security@example.org"
    response = client.get(ADDRESS)
    assert response["Content-Type"].startswith("text/plain")
    lines = dict(line.split(": ", 1) for line in response.content.decode().splitlines())
    assert lines["Contact"] == "mailto:security@example.org"
    assert lines["Expires"].endswith("Z")
    assert lines["Canonical"] == f"http://testserver{ADDRESS}"


# /llms.txt -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_language_models_are_told_what_is_public_whoever_asks(
    client: Client, ingest: Callable[..., Document], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(text_files, "DOCUMENTS_LISTED", 2)
    public = Collection.objects.create(slug="pumps", name="Pumps\n# and valves", is_public=True)
    secret = Collection.objects.create(slug="secret", name="Plans", is_public=False)
    for number in (1, 2, 3):
        ingest(public, f"pump{number}.md", f"# Pump [{number}]\n\nIt pumps.")
    plans = ingest(secret, "plans.md", "# The merger\n\nIt is in March.")
    waiting = Document.objects.create(collection=public, source="a.md", title="A waiting one")
    client.force_login(User.objects.create_superuser("boss"))
    response = client.get("/llms.txt")
    told = response.content.decode()
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert "## Pumps # and valves\n\n- [Pump (1)](http://testserver/documents/" in told
    assert "1 more documents: search the collection `pumps`." in told
    assert "[MCP](http://testserver/mcp)" in told
    for hidden in (secret.name, plans.title, waiting.title, "Pump (3)"):
        assert hidden not in told
    settings.CHAT_REQUIRES_LOGIN = True
    closed = client.get("/llms.txt").content.decode()
    assert public.slug not in closed.lower()
    assert "Nothing here can be read without an account." in closed
