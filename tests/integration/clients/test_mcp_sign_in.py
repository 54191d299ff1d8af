"""The official client of the Model Context Protocol signs a person in, at a running site with MCP_SIGN_IN."""

import asyncio
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.integration.clients.conftest import PASSWORD, hidden

# Elsewhere where they are used: every process of a run imports this module, and the client takes a second.
BACK = "http://127.0.0.1:9/back"


@pytest.fixture
def site(signing_in):
    return signing_in


class Kept:
    """A program's store of tokens."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Person:
    """A person who signs in in a browser, and answers the page that asks."""

    def __init__(self, answer):
        self.answer, self.led_to, self.page = answer, "", ""

    async def open(self, address):
        async with httpx.AsyncClient(follow_redirects=True, timeout=60) as browser:
            page = await browser.get(address)
            values = {"username": "ada", "password": PASSWORD, **hidden(page.text)}
            page = await browser.post(str(page.url), data=values, headers={"Referer": str(page.url)})
            self.page = page.text
            assert "form-action" not in page.headers["Content-Security-Policy"]
            values = {**hidden(page.text), "action": self.answer, "scopes": ["search", "ask"]}
            address = f"{str(page.url).partition('?')[0]}"
            led = await browser.post(address, data=values, headers={"Referer": address}, follow_redirects=False)
            self.led_to = led.headers["Location"]

    async def come_back(self):
        from mcp.shared.auth import AuthorizationCodeResult

        found = parse_qs(urlsplit(self.led_to).query)
        return AuthorizationCodeResult(code=found["code"][0], state=found["state"][0])


def provider(site, person, kept, method="none"):
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    metadata = OAuthClientMetadata(client_name="Notebook", redirect_uris=[BACK], token_endpoint_auth_method=method)
    return OAuthClientProvider(f"{site.url}/mcp", metadata, kept, person.open, person.come_back)


def use(site, person, kept, method="none"):
    """Search as the program, and return the text that it was given."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async def search():
        async with create_mcp_http_client(auth=provider(site, person, kept, method)) as http:
            async with Client(streamable_http_client(f"{site.url}/mcp", http_client=http)) as client:
                return await client.call_tool("search", {"query": "merger"})

    return asyncio.run(search()).content[0].text


def bearer(kept):
    return {"Authorization": f"Bearer {kept.tokens.access_token}"}


def may_enter(site, kept):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    return httpx.post(f"{site.url}/mcp", json=call, headers=bearer(kept), timeout=60).status_code != 401


@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
def test_a_program_is_let_in_with_the_rights_of_the_person(site, method):
    person, kept = Person("grant"), Kept()
    assert "March" in use(site, person, kept, method)
    assert "Notebook" in person.page
    assert "127.0.0.1:9" in person.page
    assert set(kept.tokens.scope.split()) == {"search", "ask"}
    # The token is for /mcp alone, and no key.
    search = httpx.post(f"{site.url}/api/v1/search/", json={"query": "merger"}, headers=bearer(kept), timeout=60)
    assert search.status_code == 401
    assert may_enter(site, kept)


def test_a_person_revokes_a_program_and_a_new_password_does(site):
    person, kept = Person("grant"), Kept()
    use(site, person, kept)
    assert may_enter(site, kept)
    with httpx.Client(base_url=site.url, follow_redirects=True, timeout=60) as browser:
        page = browser.get("/accounts/login/?next=/accounts/")
        values = {"username": "ada", "password": PASSWORD, **hidden(page.text)}
        page = browser.post("/accounts/login/", data=values, headers={"Referer": str(page.url)})
        assert "Programs that you let in" in page.text
        (address,) = re.findall(r'action="(/accounts/programs/[^"]+)"', page.text)
        page = browser.post(address, data=hidden(page.text), headers={"Referer": str(page.url)})
        assert (page.status_code, "Notebook" in page.text) == (200, False)
        assert not may_enter(site, kept)

        # A new password revokes the programs too, unless the box is cleared.
        use(site, person, kept)
        for box, is_refused in (({}, False), ({"revoke_programs": "on"}, True)):
            page = browser.get("/accounts/password/change/")
            assert re.search(r'<input type="checkbox" name="revoke_programs"[^>]* checked', page.text)
            values = {"oldpassword": PASSWORD, "password1": PASSWORD, "password2": PASSWORD, **hidden(page.text), **box}
            page = browser.post("/accounts/password/change/", data=values, headers={"Referer": str(page.url)})
            assert page.history, "The form was refused."
            assert may_enter(site, kept) is not is_refused


def test_nobody_is_let_in_who_was_refused_or_is_unknown(site):
    person = Person("cancel")

    from mcp.shared._httpx_utils import create_mcp_http_client

    async def use():
        async with create_mcp_http_client(auth=provider(site, person, Kept())) as http:
            await http.post(f"{site.url}/mcp", json={})

    with pytest.raises(Exception):  # noqa: B017, PT011  (the client's own)
        asyncio.run(use())
    assert "error=access_denied" in person.led_to
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer rs_wrong"}):
        refused = httpx.post(f"{site.url}/mcp", json={"method": "tools/list"}, headers=headers, timeout=60)
        assert refused.status_code == 401
        metadata = refused.headers["WWW-Authenticate"].partition('resource_metadata="')[2].rstrip('"')
        assert httpx.get(metadata, timeout=60).json()["authorization_servers"] == [site.url]


@pytest.mark.parametrize(
    "wanted",
    [
        {"redirect_uris": ["http://elsewhere.example/back"]},
        {"grant_types": ["client_credentials"]},
        {"response_types": ["token"]},
    ],
)
def test_a_program_that_wants_more_is_not_registered(site, wanted):
    body = {"client_name": "a", "redirect_uris": [BACK], "token_endpoint_auth_method": "none", **wanted}
    server = httpx.get(f"{site.url}/.well-known/oauth-authorization-server", timeout=60).json()
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert httpx.post(server["registration_endpoint"], json=body, timeout=60).status_code == 400
