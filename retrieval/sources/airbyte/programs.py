"""Find the programs of installed connectors, and read manifests (connectors as YAML files)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.utils.translation import gettext as _t

from retrieval.models import RegisteredConnector
from retrieval.sources.protocol import SourceUnreadable

MANIFEST_PROGRAM = "source-declarative-manifest"
# airbyte-cdk assumes this type if a manifest has none.
MANIFEST_TYPE = "DeclarativeSource"
# A manifest needs one of these lists. The streams of the second one are found when the connector runs.
_STREAM_LISTS = ("streams", "dynamic_streams")


def get_connectors_folder() -> Path:
    return Path(settings.DATA_DIR) / "connectors"


def get_scratch_folder() -> Path:
    return get_connectors_folder() / ".running"


def get_environment_path(connector: RegisteredConnector) -> Path:
    return get_connectors_folder() / connector.name


def check_connectors_allowed() -> None:
    if not settings.SOURCE_CONNECTORS:
        raise SourceUnreadable(
            _t("This site runs no connectors: an administrator of the server sets SOURCE_CONNECTORS.")
        )


def find_program(connector: RegisteredConnector) -> list[str]:
    """Return the command that starts the connector. Raises: SourceUnreadable if it is not installed."""
    check_connectors_allowed()
    scripts = get_environment_path(connector) / "bin"
    program = scripts / connector.program
    if not connector.is_ready or not connector.program or not program.is_file():
        raise SourceUnreadable(
            _t("The connector %(name)s is not installed here: run manage.py connector install %(name)s.")
            % {"name": connector.name}
        )
    # The script's first line names the folder from which the environment was moved.
    return [str(scripts / "python"), str(program)]


def read_manifest_spec(manifest: str) -> dict[str, Any]:
    """Return the JSON Schema of the settings that a manifest describes; empty if it has none.

    Raises: SourceUnreadable if the text is not a manifest.
    """
    try:
        content = yaml.safe_load(manifest)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SourceUnreadable(_t("This is not YAML: %s") % str(error)[:300]) from error
    if not isinstance(content, dict) or not any(isinstance(content.get(name), list) for name in _STREAM_LISTS):
        raise SourceUnreadable(_t("This is not a manifest: it has no list of streams."))
    if missing := [name for name in ("version", "check") if not content.get(name)]:
        raise SourceUnreadable(_t("This manifest is incomplete: it has no “%s”.") % missing[0])
    if content.get("type", MANIFEST_TYPE) != MANIFEST_TYPE:
        raise SourceUnreadable(_t("This is not a manifest of a source: its type is not %s.") % MANIFEST_TYPE)
    if _names_class(content):
        raise SourceUnreadable(_t("This manifest needs code of its own (class_name): register its package instead."))
    spec = _resolve_reference(content, content.get("spec"))
    schema = _resolve_reference(content, spec.get("connection_specification")) if isinstance(spec, dict) else None
    return schema if isinstance(schema, dict) else {}


def _names_class(content: Any) -> bool:
    # YAML's aliases may repeat a part many times, or put it into itself.
    seen: set[int] = set()
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            # A property of this name in a stream's schema has a mapping as its value.
            if isinstance(part.get("class_name"), str):
                return True
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return False


def _resolve_reference(content: Any, value: Any) -> Any:
    for _hop in range(10):
        if not isinstance(value, dict) or not str(value.get("$ref", "")).startswith("#/"):
            return value
        found = content
        for part in str(value["$ref"]).removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        value = found
    return None
