"""Test connectors of the package index: whether they describe and accept their settings, and read records.

.venv/bin/python -m bench.connectors.survey airbyte-source-todoist airbyte-source-jira … --place /tmp/survey

A package that consists of a declarative manifest, without Python code, is run by airbyte-cdk, as on the site. Any other
package is installed into a temporary environment. Requests go to an imitation (`scripted_service`), not to the real
service.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.connectors.made_up_settings import make_up_settings
from bench.connectors.scripted_service import ScriptedService, list_routes
from bench.reporting import format_markdown_table
from core.exceptions import RagsiteError

if TYPE_CHECKING:
    from retrieval.sources.airbyte.calls import ConnectorCommandRunner

_RESOLVE = """
import json, sys, yaml
from airbyte_cdk.sources.declarative.concurrent_declarative_source import ConcurrentDeclarativeSource
manifest = yaml.safe_load(sys.stdin)
source = ConcurrentDeclarativeSource(catalog=None, config={}, state=None, source_config=manifest)
print(json.dumps(source.resolved_manifest))
"""
_SHARED = "cdk"


@dataclass(slots=True)
class SurveyResult:
    """The result of the survey for one connector package.

    ``spec`` says how many settings the connector asks for. ``check``, ``streams`` and ``records`` are the results of
    calls in which `scripted_service` imitates the connector's real service.
    """

    package: str
    version: str = ""
    way: str = ""
    spec: str = ""
    check: str = ""
    streams: str = ""
    records: str = ""


class ConnectorSurvey:
    def __init__(self, place: Path, service: ScriptedService) -> None:
        self._place, self._service = place, service
        (place / "connectors").mkdir(parents=True, exist_ok=True)
        self._shared = place / "connectors" / _SHARED

    def prepare_shared_environment(self, requirement: str) -> None:
        if not (self._shared / "bin" / "source-declarative-manifest").exists():
            _install(self._shared, requirement)

    def try_package(self, package: str) -> SurveyResult:
        result = SurveyResult(package.removeprefix("airbyte-source-"))
        with tempfile.TemporaryDirectory(dir=self._place) as folder:
            command = ["pip", "-q", "download", "--no-deps", "-d", folder, package]
            done = subprocess.run([self._shared / "bin" / "python", "-m", *command], capture_output=True, text=True)
            wheel = next(Path(folder).glob("*.whl"), None)
            if wheel is None:
                result.way = f"not found: {(done.stderr.strip().splitlines() or ['?'])[-1][:80]}"
                return result
            result.version = wheel.name.split("-")[1]
            manifest = _read_manifest(wheel)
        name = f"survey-{result.package}"
        environment = self._place / "connectors" / name
        try:
            opened = self._open_connector(name, result, manifest, environment)
            resolved = self._resolve_manifest(manifest)
            with _set_environment_variables(self._service.environment_variables):
                self._call_connector(result, *opened, resolved)
        except (RagsiteError, OSError, ValueError, LookupError, StopIteration, subprocess.CalledProcessError) as error:
            said = f"no: {_describe(error)}"
            if not result.spec:
                result.spec = said
            elif not result.check:
                result.check = said
            elif not result.streams:
                result.streams = said
            else:
                result.records = said
        finally:
            environment.unlink() if environment.is_symlink() else shutil.rmtree(environment, ignore_errors=True)
        return result

    def _open_connector(
        self, name: str, result: SurveyResult, manifest: str, environment: Path
    ) -> tuple[Any, dict[str, Any]]:
        from retrieval.models import RegisteredConnector
        from retrieval.sources.airbyte.calls import ConnectorCommandRunner
        from retrieval.sources.airbyte.programs import MANIFEST_PROGRAM, read_manifest_spec
        from retrieval.sources.protocol import SourceUnreadable

        connector = RegisteredConnector(name=name, state=RegisteredConnector.State.READY)
        try:
            spec = read_manifest_spec(manifest)
            connector.kind, connector.manifest = RegisteredConnector.Kind.MANIFEST, manifest
            connector.program = MANIFEST_PROGRAM
            result.way = "manifest"
            environment.symlink_to(self._shared)
            if not spec:
                spec = ConnectorCommandRunner(connector, {}).read_spec()
        except SourceUnreadable:
            result.way = "package"
            connector.kind = RegisteredConnector.Kind.PACKAGE
            _install(environment, f"airbyte-source-{result.package}=={result.version}")
            self._trust_service_certificate(environment)
            scripts = sorted((environment / "bin").glob("source-*"))
            connector.program = next(each.name for each in scripts if each.name != MANIFEST_PROGRAM)
            spec = ConnectorCommandRunner(connector, {}).read_spec()
        result.spec = f"{len(spec.get('properties') or {})} settings"
        return connector, spec

    def _trust_service_certificate(self, environment: Path) -> None:
        """Make the connector in a virtual environment trust the certificate of the imitated service.

        Older versions of airbyte-cdk trust only the certificates in certifi's file, so the certificate is added there.
        """
        for bundle in environment.glob("lib/python*/site-packages/certifi/cacert.pem"):
            with bundle.open("a") as file:
                file.write(f"\n{self._service.authority_certificate}")

    def _call_connector(
        self, result: SurveyResult, connector: Any, spec: dict[str, Any], resolved: dict[str, Any]
    ) -> None:
        from retrieval.sources.airbyte.calls import ConnectorCommandRunner, StreamRecord
        from retrieval.sources.airbyte.streams import ChosenStream, read_stream_name

        self._service.routes = list_routes(resolved)
        calls: ConnectorCommandRunner = ConnectorCommandRunner(connector, make_up_settings(spec))
        self._service.reset_request_counts()
        failure = ""
        try:
            calls.check_settings()
            result.check = "ok"
        except RagsiteError as error:
            failure = f"no: {_describe(error)}"
        self._service.reset_request_counts()
        streams = calls.discover_streams()
        result.check = failure or result.check
        result.streams = str(len(streams))
        checked = (resolved.get("check") or {}).get("stream_names") or []
        ordered = sorted(streams, key=lambda each: each["name"] not in checked)
        self._service.reset_request_counts()
        chosen = ChosenStream(read_stream_name(ordered[0]), ordered[0], {})
        records = sum(isinstance(message, StreamRecord) for message in calls.read_records([chosen], seconds=90))
        result.records = f"{records} of {chosen.name}"

    def _resolve_manifest(self, manifest: str) -> dict[str, Any]:
        if not manifest:
            return {}
        command = [str(self._shared / "bin" / "python"), "-c", _RESOLVE]
        done = subprocess.run(command, input=manifest, capture_output=True, text=True)
        resolved: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else {}
        return resolved


def _describe(error: Exception) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return " ".join((text.strip() or type(error).__name__).split())[-200:]


@contextmanager
def _set_environment_variables(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables, in upper and lower case, for this process and the connectors that it starts."""
    both = {spelling: value for name, value in values.items() for spelling in (name, name.lower())}
    before = {name: os.environ.get(name) for name in both}
    os.environ.update(both)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _read_manifest(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith("/manifest.yaml")]
        return archive.read(names[0]).decode() if names else ""


def _install(environment: Path, requirement: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "-q", "install", requirement], check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--place", type=Path, required=True, help="A folder for environments, of about 1 GB.")
    parser.add_argument("--results", type=Path, help="Keep each result in this file of JSON lines; skip those in it.")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    import django

    django.setup()
    from django.conf import settings

    from retrieval.models.registered_connector import MANIFEST_PACKAGE

    settings.DATA_DIR, settings.SOURCE_CONNECTORS = options.place, True
    kept = options.results.read_text().splitlines() if options.results and options.results.exists() else []
    results = [SurveyResult(**json.loads(line)) for line in kept]
    with ScriptedService(options.place / "authority") as service:
        survey = ConnectorSurvey(options.place, service)
        survey.prepare_shared_environment("==".join(MANIFEST_PACKAGE))
        done = {each.package for each in results}
        for package in options.packages:
            if package.removeprefix("airbyte-source-") in done:
                continue
            results.append(survey.try_package(package))
            print(json.dumps(asdict(results[-1])), file=sys.stderr, flush=True)
            if options.results:
                options.results.open("a").write(json.dumps(asdict(results[-1])) + "\n")
    print(
        format_markdown_table(
            [each.name for each in fields(SurveyResult)], [list(map(str, asdict(each).values())) for each in results]
        )
    )


if __name__ == "__main__":
    main()
