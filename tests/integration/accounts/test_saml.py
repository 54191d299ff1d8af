"""SAML against an identity provider of the test's own, which signs with xmlsec.

Skipped without python3-saml: `pip install -r requirements-saml.txt`.
"""

import base64
import re
import zlib
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from django.contrib.auth.models import User

from tests.support.site import WebServer

pytest.importorskip("onelogin", reason="python3-saml is not installed")
pytestmark = pytest.mark.django_db(transaction=True)

IDP = "https://idp.example/metadata"


class IdentityProvider:
    """A key, and assertions signed with it."""

    def __init__(self):
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp.example")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .sign(key, hashes.SHA256())
        )
        plain = serialization.NoEncryption()
        self.key = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def certificate_line(self):
        return "".join(line for line in self.certificate.splitlines() if "-----" not in line)

    def respond(self, request_id, site, subject, attributes):
        from onelogin.saml2.utils import OneLogin_Saml2_Utils as Utils

        acs = f"{site}/accounts/saml/sso/acs/"
        now = datetime.now(UTC)
        issued, expires = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (now, now + timedelta(minutes=5)))
        statements = "".join(
            f'<saml:Attribute Name="{name}">'
            + "".join(f"<saml:AttributeValue>{value}</saml:AttributeValue>" for value in values)
            + "</saml:Attribute>"
            for name, values in attributes.items()
        )
        assertion = (
            '<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" '
            f'ID="_a{request_id}" Version="2.0" IssueInstant="{issued}"><saml:Issuer>{IDP}</saml:Issuer>'
            '<saml:Subject><saml:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">'
            f'{subject}</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">'
            f'<saml:SubjectConfirmationData NotOnOrAfter="{expires}" Recipient="{acs}" InResponseTo="{request_id}"/>'
            f'</saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="{issued}" NotOnOrAfter="{expires}">'
            f"<saml:AudienceRestriction><saml:Audience>{site}/accounts/saml/sso/metadata/</saml:Audience>"
            f'</saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement AuthnInstant="{issued}">'
            "<saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password"
            "</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>"
            f"<saml:AttributeStatement>{statements}</saml:AttributeStatement></saml:Assertion>"
        )
        signed = Utils.add_sign(assertion, self.key, self.certificate)
        response = (
            '<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" '
            'xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" '
            f'ID="_r{request_id}" Version="2.0" IssueInstant="{issued}" Destination="{acs}" '
            f'InResponseTo="{request_id}"><saml:Issuer>{IDP}</saml:Issuer><samlp:Status><samlp:StatusCode '
            'Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>'
            f"{re.sub(r'^<[?].*?[?]>', '', signed.decode())}</samlp:Response>"
        )
        return base64.b64encode(response.encode()).decode()


@pytest.fixture
def idp():
    return IdentityProvider()


@pytest.fixture
def site(idp, tmp_path):
    server = WebServer(
        tmp_path / "web.log",
        SAML_ENTITY_ID=IDP,
        SAML_SSO_URL="https://idp.example/sso",
        SAML_CERTIFICATE=idp.certificate_line,
        OIDC_TRUST_EMAIL="true",
    )
    yield server
    server.stop()


@pytest.fixture
def sign_in(site):
    def _sign_in(browser, signer, **attributes):
        assert "Sign in with SAML" in browser.get(f"{site.url}/accounts/login/").text
        begun = browser.get(f"{site.url}/accounts/saml/sso/login/?process=login", allow_redirects=False)
        [request] = parse_qs(urlsplit(begun.headers["Location"]).query)["SAMLRequest"]
        [request_id] = re.findall(r'ID="([^"]+)"', zlib.decompress(base64.b64decode(request), -15).decode())
        response = signer.respond(request_id, site.url, "ada-persistent-id", attributes)
        return browser.post(f"{site.url}/accounts/saml/sso/acs/", {"SAMLResponse": response})

    return _sign_in


def test_an_assertion_signs_in_and_its_groups_follow(idp, sign_in):
    sign_in(requests.Session(), idp, uid=["ada"], email=["Ada@example.org"], groups=["engineers", "writers"])
    ada = User.objects.get()
    assert (ada.username, ada.email) == ("ada", "ada@example.org")
    assert {group.name for group in ada.groups.all()} == {"engineers", "writers"}
    browser = requests.Session()
    assert sign_in(browser, idp, uid=["ada"], groups=["writers"]).status_code == 200
    assert "sessionid" in browser.cookies
    assert {group.name for group in User.objects.get().groups.all()} == {"writers"}


def test_an_assertion_of_another_key_is_refused(sign_in):
    assert "Third-Party Login Failure" in sign_in(requests.Session(), IdentityProvider(), uid=["mallory"]).text
    assert not User.objects.exists()
