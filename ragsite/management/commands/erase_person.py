"""A person erased."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from ragsite.accounts.people import LastAdministrator, erase_person, find_person, preview_erasure
from retrieval.management.prepared import PreparedCommand


class Command(PreparedCommand):
    help = "Erase a person: the account and what is personal. Without --yes, say what would be deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="The name of the account.")
        parser.add_argument("--yes", action="store_true", help="Do it.")

    def handle(self, *args: Any, **options: Any) -> None:
        user = find_person(options["user"])
        try:
            erasure = erase_person(user) if options["yes"] else preview_erasure(user)
        except LastAdministrator as error:
            raise CommandError(str(error)) from error
        self.stdout.write("Deleted:" if options["yes"] else "This would be deleted:")
        self.stdout.writelines(f"  {line}\n" for line in erasure.deleted())
        self.stdout.write("This remains:")
        self.stdout.writelines(f"  {line}\n" for line in erasure.remaining())
