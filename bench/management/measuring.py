from __future__ import annotations

import json
from abc import ABC, abstractmethod
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from bench.reporting import Report, replace_section
from core.exceptions import RagsiteError
from core.progress import ProgressBar
from evaluation.exceptions import EvaluationError


class MeasuringCommand(BaseCommand, ABC):
    """Base class of commands that print figures as Markdown tables or, with --json, as one JSON document.

    If ``section`` is set, --write puts the tables into a Markdown page, between the comments with that name.
    """

    section = ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")
        if self.section:
            parser.add_argument("--write", type=Path, metavar="FILE", help="Put the tables into this Markdown page.")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        try:
            measured = self.measure(options, bar.show)
            if options.get("write"):
                replace_section(options["write"], self.section, self.as_markdown(measured))
        except (EvaluationError, RagsiteError, ImproperlyConfigured, OSError) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.clear()
        if options["json"]:
            self.stdout.write(json.dumps(self.as_json(measured), ensure_ascii=False))
        else:
            self.stdout.write(self.as_text(measured))

    @abstractmethod
    def measure(self, options: dict[str, object], report: Report) -> Any:
        """Return the figures. Raises: EvaluationError, RagsiteError, ImproperlyConfigured, OSError, CommandError."""

    @abstractmethod
    def as_json(self, measured: Any) -> Any: ...

    @abstractmethod
    def as_markdown(self, measured: Any) -> str: ...

    def as_text(self, measured: Any) -> str:
        return self.as_markdown(measured)
