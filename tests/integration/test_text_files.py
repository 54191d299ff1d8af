from __future__ import annotations

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
