"""How well instructions to a model are found in documents."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.injection.documents import contexts, measure_flagged, measure_found, read_passages, read_sentences
from bench.statistics import share_interval
from evaluation.exceptions import EvaluationError
from retrieval.text.instructions import find_instructions

# Long enough to hide a sentence in, short enough for a passage.
_SHORTEST, _LONGEST = 200, 2000


class Command(BaseCommand):
    help = (
        "Put sentences that instruct a model into the passages of corpora and print the share that is found, for "
        "kinds that the rules were written with and kinds that they were not; and the share of passages flagged as "
        "they are."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help='Corpora: JSON lines with "text".')
        parser.add_argument("--errors", action="store_true", help="List the sentences that were flagged as they are.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            passages = [passage for path in options["files"] for passage in read_passages(path)]
            sentences = read_sentences()
        except EvaluationError as error:
            raise CommandError(str(error)) from error
        hosts = [passage[:_LONGEST] for passage in passages if len(passage) >= _SHORTEST]
        # Passages from all over the files, and none that holds an instruction of its own.
        hosts = [host for host in hosts[:: max(1, len(hosts) // 500)] if not find_instructions(host)]
        if not hosts:
            raise CommandError(f"No text of the files has {_SHORTEST} characters.")
        told: dict[str, Any] = {}
        for split in ("tuning", "held out"):
            found = measure_found(
                contexts([each for each in sentences if each.split == split], hosts), find_instructions
            )
            told[split] = {"contexts": found.contexts, "found": found.found, "by_kind": found.by_kind}
        flagged = measure_flagged(passages, find_instructions)
        told["as they are"] = {"passages": flagged.passages, "flagged": flagged.flagged}
        if options["json"]:
            self.stdout.write(json.dumps(told, ensure_ascii=False))
            return
        for split in ("tuning", "held out"):
            row = told[split]
            kinds = ", ".join(f"{kind} {hits}/{total}" for kind, (hits, total) in row["by_kind"].items())
            self.stdout.write(f"{split:<12} {_share(row['found'], row['contexts'])}  {kinds}")
        self.stdout.write(f"{'as they are':<12} {_share(flagged.flagged, flagged.passages)}")
        if options["errors"]:
            for sentence in flagged.sentences:
                self.stdout.write(f"flagged: {' '.join(sentence.split())[:200]!r}")


def _share(hits: int, total: int) -> str:
    low, high = share_interval(hits, total)
    return f"{hits} of {total} ({hits / max(1, total):.2%}, 95 % {low:.2%} to {high:.2%})"
