"""Requests that a stranger sends to the server that lets programs in, at a running site with MCP_SIGN_IN."""

import base64
import hashlib
import json
import re
import threading
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx
import pytest

from ragsite import settings as site_settings
from tests.integration.clients.conftest import PASSWORD, hidden
from tests.integration.clients.test_mcp_sign_in import BACK
from tests.support.site import ROOT

VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
API = "/identity/o/api"
# Each of httpx's own functions reads the certificates again.
# A busy machine takes longer than the five seconds that httpx waits.
HTTP = httpx.Client(verify=False, timeout=60)
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def site(signing_in):
    return signing_in


def register(site, **said):
    body = {"client_name": "Notebook", "redirect_uris": [BACK], "token_endpoint_auth_method": "none", **said}
    return HTTP.post(f"{site.url}{API}/clients", content=json.dumps(body))


@pytest.fixture
def client_id(site):
    return register(site, grant_types=["authorization_code", "refresh_token"]).json()["client_id"]


@pytest.fixture(scope="module")
def cookies(_signing_in):
    """Return the cookies of a person who has signed in: each time, the site hashes the password slowly."""
    with httpx.Client(base_url=_signing_in.url, follow_redirects=False, timeout=60) as client:
        page = client.get("/accounts/login/")
        values = {"username": "ada", "password": PASSWORD, **hidden(page.text)}
        client.post("/accounts/login/", data=values, headers={"Referer": str(page.url)})
        assert "sessionid" in client.cookies
        return dict(client.cookies)


@pytest.fixture
def person(site, cookies):
    """Yield the browser of a person who has signed in."""
    with httpx.Client(base_url=site.url, follow_redirects=False, cookies=cookies, timeout=60) as client:
        yield client


def question(program, **values):
    told = {"client_id": program, "redirect_uri": BACK, "response_type": "code", "state": "s", "scope": "search ask"}
    return {**told, "code_challenge": CHALLENGE, "code_challenge_method": "S256", **values}


def code_of(person, client_id):
    page = person.get("/identity/o/authorize", params=question(client_id))
    values = {**hidden(page.text), "action": "grant", "scopes": ["search", "ask"]}
    led = person.post("/identity/o/authorize", data=values, headers={"Referer": f"{person.base_url}/identity"})
    return parse_qs(urlsplit(led.headers["Location"]).query)["code"][0]


def exchange(site, client_id, code, **values):
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, "code_verifier": VERIFIER}
    return HTTP.post(f"{site.url}{API}/token", data={**form, "client_id": client_id, **values}, timeout=60)


def refresh(site, client_id, tokens):
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": client_id}
    return HTTP.post(f"{site.url}{API}/token", data=form, timeout=60)


def at_once(call):
    answers, barrier = [], threading.Barrier(12)

    def one():
        barrier.wait(30)
        answers.append(call())

    threads = [threading.Thread(target=one) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(answer.status_code for answer in answers), [each for each in answers if each.status_code == 200]


def may_enter(site, tokens):
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    return HTTP.post(f"{site.url}/mcp", json=LIST, headers=headers).status_code == 200


def test_there_is_no_more_than_is_needed(site):
    for path in ("oauth-authorization-server", "oauth-authorization-server/mcp", "openid-configuration"):
        told = HTTP.get(f"{site.url}/.well-known/{path}").json()
        assert {key for key in told if key.endswith(("_endpoint", "_uri"))} == {
            *("authorization_endpoint", "token_endpoint", "revocation_endpoint", "registration_endpoint")
        }
        assert (told["issuer"], told["code_challenge_methods_supported"]) == (site.url, ["S256"])
    gone = ["logout", "device", "api/device/code", "api/userinfo", "api/introspect"]
    for address in ("/.well-known/jwks.json", *(f"/identity/o/{path}" for path in gone)):
        assert {HTTP.get(site.url + address).status_code, HTTP.post(site.url + address).status_code} == {404}


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"1", b"null", b"\xff", b"[" * 4000, b'{"redirect_uris":' + b"[" * 7000),
        json.dumps({"redirect_uris": [BACK], "software_id": "x" * 9000}).encode(),
        *(
            json.dumps({"redirect_uris": [BACK], "token_endpoint_auth_method": "none", **said}).encode()
            for said in (
                *({"client_name": "a\0b"}, {"client_name": "\ud800"}, {"client_name": "x" * 101}, {"client_name": {}}),
                *({"redirect_uris": value} for value in (["http://["], [f"{BACK}\0"], ["\udfff:/"], "[" * 7000, BACK)),
                *({"redirect_uris": value} for value in ([], [1], [[]], None, [f"{BACK}\njavascript:alert(1)"])),
                *({"redirect_uris": [address]} for address in ("javascript:x", "JavaScript:x", "data:text/html,x")),
                *({"redirect_uris": [address]} for address in ("vbscript:x", "file:///a", "//evil.example/", "x")),
                *({"redirect_uris": [address]} for address in (" javascript:x", "java\tscript:x", "http://evil.example/")),
                *({"grant_types": value} for value in ("[" * 7000, ["device"], {}, [{}])),
            )
        ),
    ],
)  # fmt: skip
def test_a_registration_that_cannot_be_kept_is_refused(site, body):
    answer = HTTP.post(f"{site.url}{API}/clients", content=body)
    is_refused = answer.status_code == 400
    # A name that is no text is none.
    assert is_refused or answer.json()["client_name"] in ("", "{}"), answer.text


def test_what_a_program_says_beside_is_not_kept(site):
    said = register(site, software_id="x" * 500, client_uri="https://a.example/", jwks={"keys": ["y" * 500]})
    statement = "SELECT pg_column_size(c), data FROM allauth_idp_oidc_client AS c WHERE id = %s"
    ((size, _data),) = site.execute(statement, said.json()["client_id"])
    assert size < 1000


def test_an_app_of_a_machine_is_registered_by_its_own_scheme(site):
    assert register(site, redirect_uris=["cursor://anysphere.cursor-retrieval/oauth/callback"]).status_code == 201


HOSTILE = [
    {"client_id": "unknown"},
    {"client_id": ""},
    {"redirect_uri": "https://evil.example/"},
    {"redirect_uri": ""},
    {"redirect_uri": "http://127.0.0.1:9/other"},
    {"redirect_uri": "http://["},
    {"redirect_uri": "http://127.0.0.1:x/back"},
    {"redirect_uri": "javascript:alert(1)"},
    {"redirect_uri": "https://evil.example/", "response_type": "token"},
    {"redirect_uri": "https://evil.example/", "scope": "openid"},
    {"redirect_uri": "https://evil.example/", "prompt": "none"},
    {"prompt": "none"},
    {"prompt": "none", "scope": "openid search"},
    {"prompt": "login none"},
    {"resource": "http://["},
    {"resource": "https://elsewhere.example/"},
    {"resource": "x"},
    *({name: "a\0b"} for name in (*question(""), "prompt", "nonce", "user", "claims", "resource", "unknown")),
]


@pytest.mark.parametrize("is_signed_in", [False, True])
def test_errors_before_the_address_is_verified_are_shown(site, client_id, person, is_signed_in):
    for values in HOSTILE:
        query = urlencode(question(client_id, **values), quote_via=quote)
        answer = (person.get if is_signed_in else httpx.get)(f"{site.url}/identity/o/authorize?{query}")
        assert 400 <= answer.status_code < 500, values
        assert "Location" not in answer.headers, values


def test_a_doubled_parameter_is_refused(site, client_id):
    for name, value in question(client_id).items():
        query = f"{urlencode(question(client_id))}&{urlencode({name: value})}"
        assert HTTP.get(f"{site.url}/identity/o/authorize?{query}").status_code == 400


@pytest.mark.parametrize(
    "values", [{"code_challenge": ""}, *({"code_challenge_method": method} for method in ("plain", "", "s256"))]
)
@pytest.mark.parametrize("method", ["none", "client_secret_post"])
def test_s256_is_needed_and_the_program_is_told(site, person, values, method):
    program = register(site, token_endpoint_auth_method=method).json()["client_id"]
    answer = person.get("/identity/o/authorize", params=question(program, **values))
    location = urlsplit(answer.headers["Location"])
    assert (location.netloc, parse_qs(location.query)["error"]) == ("127.0.0.1:9", ["invalid_request"])
    assert parse_qs(location.query)["state"] == ["s"]


@pytest.mark.parametrize("path", ["token", "revoke", "clients", "authorize"])
def test_what_cannot_be_read_is_a_bad_request(site, client_id, path):
    address = f"{site.url}{'/identity/o' if path == 'authorize' else API}/{path}"
    names = ("grant_type", "code", "client_id", "client_secret", "redirect_uri", "code_verifier", "token", "resource")
    for name in (*names, "refresh_token", "request", "token_type_hint"):
        for value in ("a\0b", "http://[", "\ufffd"):
            form = {"grant_type": "authorization_code", "client_id": client_id, "code": "x", "token": "x", name: value}
            answer = HTTP.post(address, data=form)
            assert answer.status_code == 400 if value == "a\0b" else answer.status_code < 500, name
        assert HTTP.post(f"{address}?{name}=a%00b", data={}).status_code == 400
    for name in (b"\xff\0:x", b"a\0b:x", b"a:\0", b":"):
        basic = {"Authorization": f"Basic {base64.b64encode(name).decode()}"}
        for grant in ("refresh_token", "authorization_code"):
            form = {"grant_type": grant, "code": "x", "refresh_token": "x", "token": "x"}
            assert HTTP.post(address, data=form, headers=basic).status_code < 500, (name, grant)
    assert HTTP.get(f"{address}?a&=b;%zz").status_code < 500


def test_a_code_is_exchanged_once_and_its_second_use_revokes_its_tokens(site, client_id, person):
    # A wrong verifier does not use up the code.
    code = code_of(person, client_id)
    assert exchange(site, client_id, code, code_verifier="w" * 64).status_code == 400
    tokens = exchange(site, client_id, code).json()
    assert may_enter(site, tokens)
    newer = refresh(site, client_id, tokens).json()
    assert may_enter(site, newer)
    assert refresh(site, client_id, tokens).status_code == 400
    other = exchange(site, client_id, code_of(person, client_id), redirect_uri="http://127.0.0.1:9/else")
    assert (other.status_code, may_enter(site, newer)) == (400, True)
    assert exchange(site, client_id, code).json() == {"error": "invalid_grant"}
    assert not may_enter(site, tokens)
    assert not may_enter(site, newer)
    assert refresh(site, client_id, newer).status_code == 400


def test_twelve_programs_at_once_get_one_token_for_a_code(site, client_id, person):
    code = code_of(person, client_id)
    statuses, given = at_once(lambda: exchange(site, client_id, code))
    assert statuses == [200, *[400] * 11]
    # The others used the code a second time.
    assert not may_enter(site, given[0].json())


def test_and_one_for_a_refresh_token(site, client_id, person):
    tokens = exchange(site, client_id, code_of(person, client_id)).json()
    statuses, given = at_once(lambda: refresh(site, client_id, tokens))
    assert statuses == [200, *[400] * 11]
    assert may_enter(site, given[0].json())


def test_a_program_without_a_name_is_revoked_for_none(person):
    page = person.get("/accounts/")
    form, headers = hidden(page.text), {"Referer": f"{person.base_url}/accounts/"}
    assert person.post("/accounts/programs/a%00b/revoke/", data=form, headers=headers).status_code == 404


def test_programs_that_are_let_in_by_none_are_forgotten(site, client_id, person):
    exchange(site, client_id, code_of(person, client_id))
    idle = register(site).json()["client_id"]
    fresh = register(site).json()["client_id"]
    site.execute(
        "UPDATE allauth_idp_oidc_client SET created_at = now() - interval '25 hours' WHERE id <> %s",
        fresh,
    )
    command = "from core.job_queue import run_job_maintenance; run_job_maintenance()"
    site.manage("shell", "-c", command)
    left = {pk for (pk,) in site.execute("SELECT id FROM allauth_idp_oidc_client")}
    assert {client_id, fresh} <= left
    assert idle not in left


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
        ("http://127.0.0.1", 403),
        (None, 401),
    ],
)
def test_a_page_of_another_site_may_not_call(site, origin, status):
    headers = {} if origin is None else {"Origin": origin}
    for method in ("POST", "GET", "DELETE"):
        assert HTTP.request(method, f"{site.url}/mcp", json=LIST, headers=headers).status_code == status
    assert HTTP.post(f"{site.url}/mcp", json=LIST, headers={"Origin": site.url}).status_code == 401


def test_the_server_tells_the_version_of_the_product(site, client_id, person):
    told = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert told[1] == site_settings.VERSION
    tokens = exchange(site, client_id, code_of(person, client_id)).json()
    asked = {"clientInfo": {"name": "t", "version": "1"}, "capabilities": {}, "protocolVersion": "2025-06-18"}
    answer = HTTP.post(
        f"{site.url}/mcp",
        json={**LIST, "method": "initialize", "params": asked},
        headers={"Authorization": f"Bearer {tokens['access_token']}"},
    )
    assert answer.json()["result"]["serverInfo"]["version"] == told[1]
