"""An LDAP server (ldaptor) in a process of its own, over real TCP, plain and with TLS.

``python -m tests.support.ldap_server CERTIFICATE KEY`` runs it, and prints its two ports.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

BASE = "dc=example,dc=org"
PEOPLE = f"ou=people,{BASE}"
GROUPS = f"ou=groups,{BASE}"
READER = f"cn=reader,{BASE}"
READER_PASSWORD = "of the service account"
PASSWORD = "of the directory"

_ENTRIES = f"""dn: dc=org
dc: org
objectClass: dcObject

dn: {BASE}
dc: example
objectClass: dcObject

dn: {PEOPLE}
ou: people
objectClass: organizationalUnit

dn: {GROUPS}
ou: groups
objectClass: organizationalUnit

dn: {READER}
cn: reader
objectClass: person
userPassword: {READER_PASSWORD}

""" + "".join(
    f"""dn: uid={name},{PEOPLE}
uid: {name}
mail: {name}@example.org
givenName: {first}
sn: {last}
entryUUID: 00000000-0000-4000-8000-00000000000{number}
objectClass: inetOrgPerson
userPassword: {PASSWORD}

"""
    for number, (name, first, last) in enumerate([("ada", "Ada", "Lovelace"), ("bob", "Bob", "Noyce")])
)


@dataclass(frozen=True)
class LdapServer:
    url: str
    tls_url: str
    ca_file: Path

    def says(self, name: str, **values: list[str]) -> None:
        """From now on these are the values of the person's attributes."""
        from ldap3 import MODIFY_REPLACE, Connection, Server

        with Connection(Server(self.url), READER, READER_PASSWORD, auto_bind=True) as connection:
            changes = {attribute: [(MODIFY_REPLACE, given)] for attribute, given in values.items()}
            assert connection.modify(f"uid={name},{PEOPLE}", changes), connection.result


@contextmanager
def ldap_server(folder: Path) -> Iterator[LdapServer]:
    certificate, key = _certificate(folder)
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.ldap_server", str(certificate), str(key)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port, tls_port = process.stdout.readline().split()
            yield LdapServer(f"ldap://localhost:{port}", f"ldaps://localhost:{tls_port}", certificate)
        finally:
            process.kill()


def _certificate(folder: Path) -> tuple[Path, Path]:
    """One for localhost, signed by itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    paths = folder / "ldap.pem", folder / "ldap.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return paths


def _serve(certificate: str, key: str) -> None:
    from io import BytesIO

    from ldaptor import inmemory, interfaces
    from ldaptor.protocols import pureldap
    from ldaptor.protocols.ldap.ldapserver import LDAPServer
    from twisted.internet import reactor, ssl
    from twisted.internet.protocol import ServerFactory
    from twisted.python.components import registerAdapter

    tls = ssl.DefaultOpenSSLContextFactory(key, certificate)

    class Server(LDAPServer):
        def handle_LDAPBindRequest(self, request, controls, reply):
            if request.auth == b"":
                # As products do: a bind with a name and no password is an anonymous one.
                return pureldap.LDAPBindResponse(resultCode=0)
            return super().handle_LDAPBindRequest(request, controls, reply)

        def extendedRequest_StartTLS(self, _value, reply):
            reply(pureldap.LDAPExtendedResponse(resultCode=0, responseName=self.extendedRequest_StartTLS.oid))
            self.transport.startTLS(tls)

        extendedRequest_StartTLS.oid = b"1.3.6.1.4.1.1466.20037"

    class Factory(ServerFactory):
        protocol = Server

        def __init__(self, root):
            self.root = root

    registerAdapter(lambda factory: factory.root, Factory, interfaces.IConnectedLDAPEntry)

    def listen(root):
        plain = reactor.listenTCP(0, Factory(root), interface="127.0.0.1")
        encrypted = reactor.listenSSL(0, Factory(root), tls, interface="127.0.0.1")
        print(plain.getHost().port, encrypted.getHost().port, flush=True)

    inmemory.fromLDIFFile(BytesIO(_ENTRIES.encode())).addCallback(listen)
    reactor.run()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
