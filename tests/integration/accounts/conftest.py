import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from tests.support.oidc_provider import oidc_provider

PASSWORD = "a long enough one"


def is_signed_in(client):
    return "_auth_user_id" in client.session


@pytest.fixture(autouse=True)
def _no_limits_of_other_tests(db):
    cache.clear()


@pytest.fixture(scope="module")
def _provider():
    with oidc_provider() as running:
        yield running


@pytest.fixture
def provider(_provider, settings):
    """Return a provider that the site signs in with."""
    app = {
        "provider_id": "sso",
        "name": "Example SSO",
        "client_id": "ragsite",
        "secret": "secret",
        "settings": {"server_url": _provider.url},
    }
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
    return _provider


@pytest.fixture
def sign_in_at(provider):
    """``sign_in_at(client, "ada")``: the code flow, to the answer that the site gives in the end."""

    def _sign_in(client, subject, next_page="/", **query):
        begun = client.get("/accounts/oidc/sso/login/", {"process": "login", "next": next_page, **query})
        assert begun.status_code == 302, begun.content.decode()
        return client.get(provider.authorize(begun["Location"], subject).removeprefix("http://testserver"))

    return _sign_in


@pytest.fixture
def administrator():
    return User.objects.create_superuser("admin", "admin@example.org", PASSWORD)
