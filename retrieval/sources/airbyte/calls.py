"""Call a connector of Airbyte's protocol: spec, check, discover and read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _t

from retrieval.models import RegisteredConnector
from retrieval.sources.airbyte.connector_process import ConnectorProcess, ProcessLimits
from retrieval.sources.airbyte.programs import find_program, get_scratch_folder
from retrieval.sources.airbyte.state_messages import StateMessage
from retrieval.sources.airbyte.streams import ChosenStream, join_name
from retrieval.sources.protocol import SourceUnavailable, SourceUnreadable

QUICK = ProcessLimits(seconds=120.0)
MOST_STREAMS = 500
MOST_FIELDS = 300
# Longer schemas are not stored, because hardly any connector needs them to read records.
MOST_SCHEMA_CHARACTERS = 500_000
_STREAM_PARTS = (
    *("name", "namespace", "supported_sync_modes", "source_defined_cursor", "default_cursor_field"),
    "source_defined_primary_key",
)


@dataclass(frozen=True, slots=True)
class StreamRecord:
    stream: str
    data: dict[str, Any]


class ConnectorCommandRunner:
    """Runs the commands of an installed Airbyte connector with the settings of a source.

    ``notes`` are its log lines.
    """

    def __init__(
        self, connector: RegisteredConnector, config: Mapping[str, Any], secrets: Collection[str] = ()
    ) -> None:
        self._connector, self._config, self._secrets = connector, config, secrets
        self.notes: list[str] = []

    def read_spec(self) -> dict[str, Any]:
        for message in self._call("spec", {}, QUICK):
            said = message.get("spec")
            if isinstance(said, dict) and isinstance(found := said.get("connectionSpecification"), dict):
                return found
        raise SourceUnavailable(_t("The connector does not name its settings."))

    def check_settings(self) -> None:
        """Raise SourceUnreadable if the connector refuses the settings."""
        status: dict[str, Any] = {}
        for message in self._call("check", self._configuration(), QUICK):
            if isinstance(found := message.get("connectionStatus"), dict):
                status = found
        if status.get("status") == "FAILED":
            said = self._process.clean(status.get("message") or "")
            raise SourceUnreadable(_t("The connector refused the settings: %s") % (said or _t("It gave no reason.")))
        if status.get("status") != "SUCCEEDED":
            raise SourceUnavailable(_t("The connector does not say whether the settings work."))

    def discover_streams(self) -> list[dict[str, Any]]:
        """Return the connector's streams (kinds of records, such as tables), with the paths of their ``fields``."""
        streams: list[dict[str, Any]] = []
        for message in self._call("discover", self._configuration(), QUICK):
            if isinstance(catalog := message.get("catalog"), dict):
                found = catalog.get("streams")
                streams = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        streams = [each for each in streams if isinstance(each.get("name"), str)][:MOST_STREAMS]
        if not streams:
            raise SourceUnreadable(_t("The connector has no streams."))
        schemas = [each.get("json_schema") for each in streams]
        keeps_schemas = len(json.dumps(schemas)) <= MOST_SCHEMA_CHARACTERS
        return [
            {
                **{part: stream[part] for part in _STREAM_PARTS if part in stream},
                "json_schema": schema if keeps_schemas else {},
                "fields": list(_list_fields(schema))[:MOST_FIELDS],
            }
            for stream, schema in zip(streams, schemas, strict=True)
        ]

    def read_records(
        self, streams: Collection[ChosenStream], state: str = "", seconds: float = ProcessLimits().seconds
    ) -> Iterator[StreamRecord | StateMessage]:
        """Yield the records of the streams, and between them the connector's STATE messages, in the connector's order.

        The connector continues after ``state``, the last STATE of an earlier call. Raises: SourceUnreadable or
        SourceUnavailable if not all records could be read.
        """
        catalog = {"streams": [stream.build_catalog_entry() for stream in streams]}
        files = {**self._configuration(), "--catalog": json.dumps(catalog)}
        if state:
            files["--state"] = state
        names = {stream.name for stream in streams}
        for message in self._call("read", files, ProcessLimits(seconds=seconds)):
            if message["type"] == "STATE" and isinstance(told := message.get("state"), dict):
                yield StateMessage(told)
            if message["type"] != "RECORD":
                continue
            record = message.get("record")
            if not isinstance(record, dict) or not isinstance(record.get("data"), dict):
                raise SourceUnreadable(_t("The connector sent a record that cannot be read: %s") % str(record)[:100])
            name = join_name(record.get("namespace"), record.get("stream"))
            if name in names:
                yield StreamRecord(name, record["data"])

    def _configuration(self) -> dict[str, str]:
        return {"--config": json.dumps(self._config)}

    def _call(self, call: str, files: Mapping[str, str], limits: ProcessLimits) -> Iterator[dict[str, Any]]:
        command = [*find_program(self._connector), call]
        if self._connector.kind == RegisteredConnector.Kind.MANIFEST:
            files = {**files, "--manifest-path": self._connector.manifest}
        process = ConnectorProcess(command, files, scratch=get_scratch_folder(), secrets=self._secrets, limits=limits)
        with process as self._process:
            try:
                yield from process.iterate_messages()
            finally:
                self.notes += process.notes


def _list_fields(schema: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or depth > 2:
        return
    for name, field in properties.items():
        yield f"{path}{name}"
        if isinstance(field, dict):
            inner = field.get("items") if isinstance(field.get("items"), dict) else field
            yield from _list_fields(inner, f"{path}{name}.", depth + 1)
