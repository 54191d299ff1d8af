"""A person's data, as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from ragsite.accounts.people import find_person, person_as_json
from ragsite.operations.audit_log import record
from retrieval.management.prepared import PreparedCommand


class Command(PreparedCommand):
    help = "Print all that the site keeps about a person, as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="The name of the account.")

    def handle(self, *args: Any, **options: Any) -> None:
        user = find_person(options["user"])
        record("person.exported", user)
        self.stdout.write(json.dumps(person_as_json(user), indent=2, ensure_ascii=False))
