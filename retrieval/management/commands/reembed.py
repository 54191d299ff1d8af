from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from core.exceptions import RagsiteError
from core.progress import ProgressBar
from retrieval.index.closeness import describe_missing_calibration, find_calibration
from retrieval.index.reembedding import drop_unused_embedders, reembed
from retrieval.management.prepared import MigratedDatabaseCommand


class Command(MigratedDatabaseCommand):
    help = (
        "Embed all passages with the embedder that the settings name, then search its vectors. Run it with the new "
        "settings while the site runs with the old ones; restart the site when it is done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--drop-old", action="store_true", help="Delete the vectors that are no longer searched.")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        try:
            row = reembed(bar.show)
        except RagsiteError as error:
            raise CommandError(
                f"{error} What was embedded so far is kept; the site still searches the old vectors."
            ) from error
        finally:
            bar.clear()
        self.stdout.write(f"The search now uses {row.name}. Restart the site with the same settings.")
        if find_calibration(row.name) is None:
            self.stdout.write(self.style.WARNING(describe_missing_calibration(row.name)))
        if options["drop_old"]:
            self.stdout.write(f"Vectors of {drop_unused_embedders()} other embedder(s) deleted.")
