"""Install each connector into its own virtual environment below DATA_DIR/connectors."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _t

from core.exceptions import RagsiteError
from retrieval.models import RegisteredConnector
from retrieval.sources.airbyte.calls import ConnectorCommandRunner
from retrieval.sources.airbyte.connector_process import build_connector_environment
from retrieval.sources.airbyte.programs import (
    MANIFEST_PROGRAM,
    check_connectors_allowed,
    get_connectors_folder,
    get_environment_path,
    read_manifest_spec,
)

State = RegisteredConnector.State
Say = Callable[[str], object]


class InstallationFailed(RagsiteError):
    """An error: the connector could not be installed. The message is for the admin."""


def install(connector: RegisteredConnector, say: Say) -> None:
    """Install the connector into a new environment, which replaces an earlier one, and store its spec.

    Raises: InstallationFailed, SourceUnreadable.
    """
    check_connectors_allowed()
    get_connectors_folder().mkdir(parents=True, exist_ok=True)
    building, place = get_connectors_folder() / f".{connector.name}.new", get_environment_path(connector)
    with _lock_installation(connector):
        _update_row(connector, state=State.INSTALLING, error="")
        try:
            shutil.rmtree(building, ignore_errors=True)
            say(_t("Making a virtual environment in %s …") % place)
            _run_command([sys.executable, "-m", "venv", str(building)], say)
            say(_t("Installing %s …") % connector.package_requirement)
            python = str(building / "bin" / "python")
            pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
            _run_command([*pip, "install", "--progress-bar", "off", connector.package_requirement], say)
            program = _choose_program(connector, building / "bin")
            shutil.rmtree(place, ignore_errors=True)
            building.rename(place)
            # `read_spec` runs the new program, and needs these fields.
            connector.state, connector.program = State.READY, program
            spec = read_spec(connector)
            _update_row(connector, state=State.READY, program=program, spec=spec, installed_at=timezone.now())
        except RagsiteError as error:
            _update_row(connector, state=State.FAILED, error=str(error)[:2000])
            raise
        finally:
            shutil.rmtree(building, ignore_errors=True)


def is_being_installed(connector: RegisteredConnector) -> bool:
    try:
        with _lock_installation(connector):
            return False
    except InstallationFailed:
        return True


def find_left_environments() -> list[str]:
    """Return the names of environments on this machine whose connectors were deleted."""
    if not get_connectors_folder().is_dir():
        return []
    folders = {path.name for path in get_connectors_folder().iterdir() if path.is_dir() and path.name[0] != "."}
    return sorted(folders.difference(RegisteredConnector.objects.values_list("name", flat=True)))


def remove_environment(name: str) -> None:
    """Remove the environment of a deleted connector. Raises: InstallationFailed if it is being installed."""
    with _lock_installation(RegisteredConnector(name=name)):
        # A connector of the same name may have been added and installed meanwhile.
        if not RegisteredConnector.objects.filter(name=name).exists():
            shutil.rmtree(get_connectors_folder() / name)


def read_spec(connector: RegisteredConnector) -> dict[str, Any]:
    if connector.kind == RegisteredConnector.Kind.MANIFEST:
        return read_manifest_spec(connector.manifest)
    return ConnectorCommandRunner(connector, {}).read_spec()


def _choose_program(connector: RegisteredConnector, scripts: Path) -> str:
    if connector.kind == RegisteredConnector.Kind.MANIFEST:
        return MANIFEST_PROGRAM
    names = sorted(path.name for path in scripts.glob("source-*") if path.name != MANIFEST_PROGRAM)
    expected = connector.package.removeprefix("airbyte-").replace("_", "-")
    if expected in names or len(names) == 1:
        return expected if expected in names else names[0]
    raise InstallationFailed(_t("%s has no console script that begins with source-.") % connector.package_requirement)


def _update_row(connector: RegisteredConnector, **values: Any) -> None:
    RegisteredConnector.objects.filter(pk=connector.pk).update(**values)
    for name, value in values.items():
        setattr(connector, name, value)


@contextlib.contextmanager
def _lock_installation(connector: RegisteredConnector) -> Iterator[None]:
    get_connectors_folder().mkdir(parents=True, exist_ok=True)
    with (get_connectors_folder() / f".{connector.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InstallationFailed(_t("Another process is installing %s.") % connector.name) from error
        yield


def _run_command(command: list[str], say: Say) -> None:
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    environment = {
        **build_connector_environment(os.path.expanduser("~")),
        **pip,
        "PATH": os.environ.get("PATH", os.defpath),
    }
    environment.pop("TMPDIR")
    last: list[str] = []
    try:
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                text = line.decode("utf-8", "replace").rstrip()
                say(text)
                last = [*last[-4:], text]
    except OSError as error:
        raise InstallationFailed(str(error)) from error
    if process.returncode:
        raise InstallationFailed("\n".join(last) or _t("It gave no reason."))
