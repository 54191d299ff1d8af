"""Imitate any service that a connector's manifest describes, as a proxy with its own certificate authority."""

from __future__ import annotations

import datetime
import ipaddress
import json
import re
import ssl
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_MOMENT = datetime.datetime(2026, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
_SIGNED_IN = {"access_token": "made-up", "token_type": "bearer", "expires_in": 3600, "id": 1, "ok": True}


@dataclass(frozen=True, slots=True)
class ScriptedRoute:
    """The end of a URL path that a connector requests, and the records to respond with."""

    name: str
    path: re.Pattern[str]
    field_path: tuple[str, ...]
    record: Mapping[str, Any]

    def answer(self, *, is_first: bool) -> Any:
        records: Any = [dict(self.record)] if is_first else []
        for part in reversed(self.field_path):
            records = ([records] if is_first else []) if part == "*" else {part: records}
        return records


def list_routes(manifest: Mapping[str, Any]) -> list[ScriptedRoute]:
    """Return a route for each stream (kind of record) of a manifest in which all references are already resolved."""
    routes = []
    for stream in manifest.get("streams") or []:
        for part in (stream, stream.get("full_refresh_stream")):
            retriever = part.get("retriever") if isinstance(part, dict) else None
            if isinstance(retriever, dict) and isinstance(requester := retriever.get("requester"), dict):
                selector = retriever.get("record_selector")
                routes.append(_read_route(part, requester, selector if isinstance(selector, dict) else {}))
    return sorted(routes, key=lambda route: -len(route.path.pattern))


def _read_route(stream: Mapping[str, Any], requester: Mapping[str, Any], selector: Mapping[str, Any]) -> ScriptedRoute:
    address = str(requester.get("path") or urlsplit(str(requester.get("url_base") or "")).path).split("?")[0]
    pieces = re.split(r"\{\{[^}]*\}\}", address.strip("/"))
    pattern = "[^?]+".join(re.escape(piece) for piece in pieces)
    extractor = selector.get("extractor")
    found = extractor.get("field_path") if isinstance(extractor, dict) else None
    field_path = tuple(map(str, found)) if isinstance(found, list) else ()
    return ScriptedRoute(str(stream.get("name")), re.compile(f"(?:^|/){pattern}/?$"), field_path, make_record(stream))


def make_record(stream: Mapping[str, Any]) -> dict[str, Any]:
    """Return a made-up record that fits the schema and the cursor of the stream."""
    loader = stream.get("schema_loader")
    loader = loader[0] if isinstance(loader, list) and loader else loader
    schema = loader.get("schema") if isinstance(loader, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    known = properties if isinstance(properties, dict) else {"id": {"type": "integer"}, "name": {"type": "string"}}
    record = {name: _make_value(name, each) for name, each in known.items()}
    record.setdefault("id", 1)
    cursor = stream.get("incremental_sync")
    if isinstance(cursor, dict) and isinstance(name := cursor.get("cursor_field"), str) and "{" not in name:
        record[name] = _format_example_moment(str(cursor.get("datetime_format") or "%Y-%m-%dT%H:%M:%SZ"))
    return record


def _format_example_moment(form: str) -> Any:
    if form in ("%s", "%ms", "%epoch_microseconds"):
        return int(_MOMENT.timestamp()) * {"%s": 1, "%ms": 1000}.get(form, 1_000_000)
    return _MOMENT.strftime(form.replace("%_ms", "%f"))


def _make_value(name: str, schema: Any) -> Any:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    kind = next((each for each in kinds if each != "null"), "string") if isinstance(kinds, list) else kinds
    match kind:
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case "array":
            return []
        case "object":
            inner = schema.get("properties")
            return {part: _make_value(part, each) for part, each in inner.items()} if isinstance(inner, dict) else {}
    looks_like_time = schema.get("format") == "date-time" if isinstance(schema, dict) else False
    return _format_example_moment("%Y-%m-%dT%H:%M:%SZ") if looks_like_time or name.endswith(("_at", "_on")) else "1"


class ScriptedService:
    """A context manager: a proxy that answers a connector's requests instead of the real service.

    ``routes`` describe the answers, and ``environment_variables`` make a connector use the proxy. ``asked`` counts the
    requests since ``begin`` by the route's name. Only the first request for a path gets a record, so paging ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._authority = self._make_certificate("Scripted services", self._key, is_authority=True)
        (folder / "authority.pem").write_bytes(self._authority.public_bytes(serialization.Encoding.PEM))
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._lock = threading.Lock()
        self.routes: list[ScriptedRoute] = []
        self.reset_request_counts()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_CONNECT(self) -> None:
                self.send_response(200)
                self.end_headers()
                context = service.get_tls_context(self.path.rpartition(":")[0])
                self.connection = context.wrap_socket(self.connection, server_side=True)
                self.rfile = self.connection.makefile("rb")
                self.wfile = self.connection.makefile("wb")
                # An HTTP/1.0 server would close the connection, but it must stay open.
                self.close_connection = False

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.dumps(service.answer(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> ScriptedService:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment_variables(self) -> dict[str, str]:
        proxy, authority = f"http://127.0.0.1:{self._server.server_port}", str(self._folder / "authority.pem")
        return {
            "HTTPS_PROXY": proxy,
            "HTTP_PROXY": proxy,
            "NO_PROXY": "",
            "REQUESTS_CA_BUNDLE": authority,
            "SSL_CERT_FILE": authority,
        }

    @property
    def authority_certificate(self) -> str:
        return self._authority.public_bytes(serialization.Encoding.PEM).decode()

    def reset_request_counts(self) -> None:
        self.asked: Counter[str] = Counter()
        self._paths: Counter[str] = Counter()

    def answer(self, address: str) -> Any:
        path = urlsplit(address).path
        route = next((each for each in self.routes if each.path.search(path)), None)
        with self._lock:
            self.asked[route.name if route else "unknown"] += 1
            self._paths[path] += 1
            return route.answer(is_first=self._paths[path] == 1) if route else _SIGNED_IN

    def get_tls_context(self, host: str) -> ssl.SSLContext:
        with self._lock:
            if host not in self._contexts:
                key = ec.generate_private_key(ec.SECP256R1())
                file = self._folder / "host.pem"
                form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                private = key.private_bytes(serialization.Encoding.PEM, *form)
                file.write_bytes(private + self._make_certificate(host, key).public_bytes(serialization.Encoding.PEM))
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(file)
                self._contexts[host] = context
            return self._contexts[host]

    def _make_certificate(
        self, name: str, key: ec.EllipticCurvePrivateKey, *, is_authority: bool = False
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:60])])
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if is_authority else self._authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=7))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if is_authority:
            usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
            made = made.add_extension(x509.KeyUsage(**usage), critical=True)
        else:
            made = made.add_extension(x509.SubjectAlternativeName(list(_list_alternative_names(name))), critical=False)
            issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            made = made.add_extension(issuer, critical=False)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return made.add_extension(identifier, critical=False).sign(self._key, hashes.SHA256())


_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _list_alternative_names(host: str) -> Iterator[x509.GeneralName]:
    try:
        yield x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        yield x509.DNSName(host)
