"""Connectors that nobody here wrote, from the package index: `make test-connectors`, outside the suite."""

import json
import os
from io import StringIO
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import call_command

from retrieval.models import Document, RegisteredConnector, Source
from retrieval.models.registered_connector import MANIFEST_PACKAGE
from retrieval.sources.airbyte.programs import read_manifest_spec
from retrieval.sources.airbyte.streams import add_option_prefix
from tests.support.sources import WebServer, make_source, names, numbers, run_once

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("TEST_CONNECTORS" not in os.environ, reason="It installs packages: make test-connectors."),
]
MANIFEST = """
version: 6.0.0
type: DeclarativeSource
check: {type: CheckStream, stream_names: [articles]}
streams:
  - type: DeclarativeStream
    name: articles
    primary_key: [id]
    retriever:
      type: SimpleRetriever
      requester:
        type: HttpRequester
        url_base: "{{ config['server'] }}"
        path: /articles
        http_method: GET
        authenticator: {type: BearerAuthenticator, api_token: "{{ config['token'] }}"}
      record_selector: {type: RecordSelector, extractor: {type: DpathExtractor, field_path: [items]}}
      paginator:
        type: DefaultPaginator
        page_token_option: {type: RequestOption, inject_into: request_parameter, field_name: page}
        pagination_strategy: {type: PageIncrement, page_size: 10, start_from_page: 1}
    schema_loader:
      type: InlineSchemaLoader
      schema:
        type: object
        properties: {id: {type: integer}, title: {type: string}, body: {type: string}, url: {type: string}}
spec:
  type: Spec
  connection_specification:
    type: object
    required: [server, token]
    properties:
      server: {type: string, title: Server}
      token: {type: string, title: Token, airbyte_secret: true}
"""


class Service(WebServer):
    """A REST service with a token and pages of ten records."""

    records: dict

    def answer(self, request):
        if request.headers.get("Authorization") != "Bearer right-token":
            request.send(b'{"error": "who are you?"}', 401)
            return
        page = int(parse_qs(urlsplit(request.path).query).get("page", ["1"])[0])
        items = [*self.records.values()][10 * page - 10 : 10 * page]
        request.send(json.dumps({"items": items}).encode(), 200, **{"Content-Type": "application/json"})


@pytest.fixture
def service():
    made = Service()
    made.records = {
        number: {"id": number, "title": f"Depot {number}", "body": f"<p>It opens at {number}:30.</p>", "url": made.url}
        for number in range(25)
    }
    yield made
    made.close()


def install(**values):
    connector = RegisteredConnector.objects.create(**values)
    call_command("connector", "install", connector.name, stdout=StringIO())
    connector.refresh_from_db()
    return connector


def test_a_manifest_reads_a_rest_service(service, collection, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    install(name="service", kind="manifest", manifest=MANIFEST, spec=read_manifest_spec(MANIFEST))
    options = {"connector": "service", "config.server": service.url, "config.token": "right-token"}
    source = make_source(collection, "connector", options)
    preview = run_once(source, is_preview=True)
    assert preview.status == "done", preview.error
    source = Source.objects.get()
    assert source.found["streams"][0]["fields"] == ["id", "title", "body", "url"]
    mapping = {"key_fields": ["id"], "title_fields": ["title"], "text_fields": ["body"]}
    source.options |= {"streams": ["articles"], **add_option_prefix("articles", mapping)}
    source.save()
    run = run_once(source)
    assert (run.status, numbers(run)) == ("done", (25, 0, 0, 0, 0)), run.error
    assert b"It opens at 7:30." in Document.objects.get(source="Shelf/depot-7.html").file.read()
    del service.records[3]
    service.records[4]["body"] = "<p>It is closed.</p>"
    assert numbers(run_once(source)) == (0, 1, 23, 1, 0)

    wrong = make_source(collection, "connector", {**options, "config.token": "wrong-token"}, name="Other")
    run = run_once(wrong, is_preview=True)
    assert (run.status, "wrong-token" in f"{run.error} {run.details}") == ("failed", False)
    service.failing["/articles"] = 500
    service.close()
    assert run_once(source).status == "waiting"
    assert len(names()) == 24


def test_a_package_makes_records_up(collection, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    connector = install(name="faker", kind="package", package="airbyte-source-faker", version="7.2.1")
    assert "count" in connector.spec["properties"]
    assert MANIFEST_PACKAGE[0] not in connector.package_requirement
    options = {"connector": "faker", "config.count": 40, "config.seed": 1, "config.parallelism": 1}
    source = make_source(collection, "connector", options)
    assert run_once(source, is_preview=True).status == "done"
    source = Source.objects.get()
    mapping = {"key_fields": ["id"], "title_fields": ["name"], "text_format": "txt"}
    mapping["text_fields"] = ["name", "occupation", "address.city"]
    source.options |= {"streams": ["users"], **add_option_prefix("users", mapping)}
    source.save()
    run = run_once(source)
    assert numbers(run) == (40, 0, 0, 0, 0), run.error
