"""An evaluation set from a folder in BEIR's form."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils.text import slugify

from evaluation.exceptions import EvaluationError
from evaluation.sets.beir_files import JUDGEMENTS, LARGEST_BYTES, QUERIES
from evaluation.sets.importing import import_beir
from retrieval.management.prepared import PreparedCommand
from retrieval.models import Collection


class Command(PreparedCommand):
    help = (
        "Make an evaluation set of the queries and judgements in a folder in BEIR's form. The judged documents are "
        "named by their source and must be in the collection; all of the set is imported, or nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help=f"Holds {QUERIES} and the judgements.")
        parser.add_argument("--collection", required=True, metavar="SLUG")
        parser.add_argument("--slug", default="", help="The set's short name; the folder's name when left out.")
        parser.add_argument("--name", default="", help="The set's name; its short name when left out.")
        parser.add_argument(
            "--qrels",
            default="",
            metavar="FILE",
            help=f"The judgements, by their path in the folder; the first of {', '.join(JUDGEMENTS)} when left out.",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        collection = Collection.objects.filter(slug=options["collection"]).first()
        if collection is None:
            raise CommandError(f"There is no collection named {options['collection']!r}.")
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}.")
        try:
            made = import_beir(
                _files(folder, options["qrels"]),
                collection,
                slug=options["slug"] or slugify(folder.resolve().name)[:50],
                name=options["name"],
                judgements=options["qrels"],
            )
        except EvaluationError as error:
            raise CommandError(str(error)) from error
        number = made.questions.count()
        if options["json"]:
            counted = {"set": made.slug, "collection": collection.slug, "questions": number}
            self.stdout.write(json.dumps(counted, ensure_ascii=False))
        else:
            self.stdout.write(f"{made.slug}: {number} questions to {collection.slug}.")


def _files(folder: Path, judgements: str) -> dict[str, bytes]:
    """The contents of the files that count, by their paths in the folder. Raises: EvaluationError."""
    files = {}
    for name in {QUERIES, judgements} - {""} if judgements else {QUERIES, *JUDGEMENTS}:
        path = folder / name
        if path.is_file():
            try:
                if path.stat().st_size > LARGEST_BYTES:
                    raise EvaluationError(f"{path} is larger than {LARGEST_BYTES // 2**20} MiB.")
                files[name] = path.read_bytes()
            except OSError as error:
                raise EvaluationError(f"{path} cannot be read: {error.strerror}.") from error
    return files
