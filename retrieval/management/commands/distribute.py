"""Spread a site's passages over the nodes of a Citus cluster."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from retrieval.index.distribution import nodes, plan, shard_count, trouble
from retrieval.management.prepared import PreparedCommand


class Command(PreparedCommand):
    help = (
        "Distribute passages, their vectors and the documents' texts over the nodes of a Citus cluster. Stop the site "
        "first. What a run that was interrupted has done stands, and the next one goes on from there."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--shards", type=int, help="In how many shards (4 a node, at least 8).")
        parser.add_argument("--check", action="store_true", help="Say what would be done, and whether it can be.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["shards"] is not None and options["shards"] < 1:
            raise CommandError("The number of shards is 1 or more.")
        if found := trouble():
            raise CommandError(found)
        steps = plan(options["shards"])
        if options["check"]:
            for node in nodes():
                self.stdout.write(f"{node.name}: {'holds' if node.holds_shards else 'does not hold'} shards")
        if not steps:
            self.stdout.write(f"Distributed over {shard_count()} shards; there is nothing to do.")
            return
        for number, step in enumerate(steps, start=1):
            self.stdout.write(f"{number} of {len(steps)}: {step.title}")
            if options["check"]:
                continue
            started = time.monotonic()
            try:
                step.run()
            except DatabaseError as error:
                raise CommandError(
                    f"{str(error).rstrip()}\nWhat was done so far stands: run it again to go on."
                ) from error
            self.stdout.write(f"  {time.monotonic() - started:.1f} s")
        if not options["check"]:
            self.stdout.write(f"Distributed over {shard_count()} shards. Start the site again.")
