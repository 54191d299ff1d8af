import pytest

from ragsite.http import text_files
from retrieval.models import Collection, Document
from tests.support.people import make_superuser


@pytest.mark.django_db
def test_language_models_are_told_what_is_public_whoever_asks(client, ingest, monkeypatch, settings):
    monkeypatch.setattr(text_files, "DOCUMENTS_LISTED", 2)
    public = Collection.objects.create(slug="pumps", name="Pumps\n# and valves", visibility="public")
    secret = Collection.objects.create(slug="secret", name="Plans", visibility="staff")
    for number in (1, 2, 3):
        ingest(public, f"pump{number}.md", f"# Pump [{number}]\n\nIt pumps.")
    plans = ingest(secret, "plans.md", "# The merger\n\nIt is in March.")
    waiting = Document.objects.create(collection=public, source="a.md", title="A waiting one")
    client.force_login(make_superuser("boss"))
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
