from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from core.exceptions import RagsiteError
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.models import RegisteredConnector
from retrieval.sources.airbyte.installation import (
    find_left_environments,
    install,
    is_being_installed,
    remove_environment,
)
from retrieval.sources.airbyte.programs import get_environment_path


class Command(MigratedDatabaseCommand):
    help = "Install connectors that a superuser registered, list them with their state, or remove deleted ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        installing = actions.add_parser("install", help="Make an environment of its own, and read its settings.")
        installing.add_argument("name", metavar="NAME")
        actions.add_parser("list", help="List all connectors.")
        actions.add_parser("clean", help="Remove the environments of deleted connectors from this machine.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            for connector in RegisteredConnector.objects.all():
                self.stdout.write(f"{connector.name}\t{connector.package_requirement}\t{_describe(connector)}")
            for name in find_left_environments():
                self.stdout.write(f"{name}\t-\tdeleted: `connector clean` removes its environment")
            return
        if options["action"] == "clean":
            self._clean()
            return
        chosen = RegisteredConnector.objects.filter(name=options["name"]).first()
        if chosen is None:
            raise CommandError(f"There is no connector {options['name']}: a superuser adds it in the admin first.")
        try:
            install(chosen, self.stdout.write)
        except RagsiteError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{chosen.name} is ready.")

    def _clean(self) -> None:
        for name in find_left_environments():
            try:
                remove_environment(name)
            except (RagsiteError, OSError) as error:
                raise CommandError(str(error)) from error
            self.stdout.write(f"Removed the environment of {name}.")


def _describe(connector: RegisteredConnector) -> str:
    if connector.state == RegisteredConnector.State.FAILED:
        return f"failed: {connector.error}"
    if connector.state == RegisteredConnector.State.INSTALLING and not is_being_installed(connector):
        return "its installation broke off: install it again"
    if connector.is_ready and not get_environment_path(connector).is_dir():
        return "not installed on this machine"
    return connector.state
