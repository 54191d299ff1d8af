from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from retrieval.index.distribution import count_shards, distribute_tables, find_citus_problem
from retrieval.management.prepared import MigratedDatabaseCommand


class Command(MigratedDatabaseCommand):
    help = (
        "Distribute passages, their vectors and the documents' texts over the nodes of a Citus cluster. Stop the site "
        "first. What a run that was interrupted has done stands, and the next one goes on from there."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--shards", type=int, help="In how many shards (4 a node, at least 8).")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["shards"] is not None and options["shards"] < 1:
            raise CommandError("The number of shards is 1 or more.")
        if found := find_citus_problem():
            raise CommandError(found)
        try:
            distribute_tables(self.stdout.write, options["shards"])
        except DatabaseError as error:
            raise CommandError(f"{str(error).rstrip()}\nWhat was done so far stands: run it again to go on.") from error
        self.stdout.write(f"Distributed over {count_shards()} shards. Start the site again.")
