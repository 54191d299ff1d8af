"""Manifests that airbyte-cdk runs are accepted; an error names the cause for other texts."""

import json

import pytest

from retrieval.sources.airbyte.programs import read_manifest_spec
from retrieval.sources.protocol import SourceUnreadable

STREAM = {"type": "DeclarativeStream", "name": "articles"}
MANIFEST = {
    "version": "6.0.0",
    "type": "DeclarativeSource",
    "check": {"type": "CheckStream", "stream_names": ["articles"]},
    "streams": [STREAM],
    "spec": {"connection_specification": {"type": "object", "properties": {"token": {"type": "string"}}}},
}
DYNAMIC = {name: value for name, value in MANIFEST.items() if name != "streams"} | {
    "dynamic_streams": [{"type": "DynamicDeclarativeStream", "stream_template": STREAM}]
}
UNTYPED = {name: value for name, value in MANIFEST.items() if name != "type"}
SCHEMA = {"properties": {"class_name": {"type": "string"}}}
WITH_COLUMN = MANIFEST | {"streams": [STREAM | {"schema_loader": {"type": "InlineSchemaLoader", "schema": SCHEMA}}]}
CUSTOM = MANIFEST | {"streams": [STREAM | {"retriever": {"type": "CustomRetriever", "class_name": "source.Own"}}]}


@pytest.mark.parametrize("manifest", [MANIFEST, DYNAMIC, UNTYPED, WITH_COLUMN])
def test_manifests_that_airbyte_accepts_are_accepted(manifest):
    assert read_manifest_spec(json.dumps(manifest))["properties"] == {"token": {"type": "string"}}


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        ([MANIFEST], "no list of streams"),
        (MANIFEST | {"streams": "articles"}, "no list of streams"),
        (MANIFEST | {"version": ""}, "it has no “version”"),
        ({name: value for name, value in MANIFEST.items() if name != "check"}, "it has no “check”"),
        (MANIFEST | {"type": "Deployment"}, "type is not DeclarativeSource"),
        (CUSTOM, "needs code of its own"),
    ],
)
def test_other_texts_get_an_error_that_names_the_cause(manifest, error):
    with pytest.raises(SourceUnreadable, match=error):
        read_manifest_spec(json.dumps(manifest))


def test_aliases_that_repeat_or_contain_themselves_are_read():
    lists = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    manifest = f"a0: &a0 [x]\n{lists}own: &own [*own]\n" + "".join(
        f"{name}: {json.dumps(value)}\n" for name, value in MANIFEST.items()
    )
    assert read_manifest_spec(manifest)["type"] == "object"
