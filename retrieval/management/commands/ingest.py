from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.exceptions import RagsiteError
from retrieval.documents.file_loading import ingest_paths
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.models import Collection
from retrieval.models.collection import Visibility

MOST_NAMED = 5


class Command(MigratedDatabaseCommand):
    help = "Read documents into a collection: files, folders, or the corpus.jsonl of a BEIR set."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument(
            "--at-once", type=int, default=len(os.sched_getaffinity(0)), help="How many files are read at once."
        )
        parser.add_argument("--collection", default="documents", help="Its short name; made when it does not exist.")
        parser.add_argument("--language", default="auto", help="Of a new collection: auto, english, dutch, simple, …")
        parser.add_argument(
            "--visibility",
            choices=Visibility.values,
            default=Visibility.PUBLIC.value,
            help="Who may ask a new collection: everybody, everybody who has signed in, staff, or by a grant alone.",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["collection"]
        collection, is_new = Collection.objects.get_or_create(
            slug=slug,
            defaults={
                "name": slug.capitalize(),
                "text_search_configuration": options["language"],
                "visibility": options["visibility"],
            },
        )
        output = self.stderr if options["json"] else self.stdout
        if is_new:
            output.write(f"Made the collection {slug}, which may be asked by {collection.get_visibility_display()}.")
        try:
            counts = ingest_paths(options["paths"], collection, output, at_once=options["at_once"])
        except (FileNotFoundError, RagsiteError) as error:
            raise CommandError(str(error)) from error
        for source, message in counts.failures:
            self.stderr.write(f"{source}: {message}")
        if counts.skipped:
            more = "" if len(counts.skipped) <= MOST_NAMED else ", …"
            self.stderr.write(
                f"Skipped {len(counts.skipped)}, which are no documents: {', '.join(counts.skipped[:MOST_NAMED])}{more}"
            )
        if options["json"]:
            names = ("added", "unchanged", "failed", "chunks")
            result = {name: getattr(counts, name) for name in names} | {
                "skipped": len(counts.skipped),
                "seconds": round(counts.seconds, 2),
            }
            self.stdout.write(json.dumps(result))
        else:
            rate = f" ({counts.chunks / counts.seconds:.0f} passages/s)" if counts.added and counts.seconds else ""
            self.stdout.write(
                f"{counts.added} added, {counts.unchanged} unchanged, {counts.failed} failed; "
                f"{counts.chunks} passages in {counts.seconds:.1f} s{rate}."
            )
        if counts.failed:
            raise SystemExit(1)
