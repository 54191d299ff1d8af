"""How many words are recognised wrongly on pages that are scanned ever worse."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.recognition.pages import CONDITIONS, as_file, count_errors, cut_pages, scan
from retrieval.documents.recognition import tesseract

_FONTS = ("DejaVuSerif.ttf", "LiberationSans-Regular.ttf")


class Command(BaseCommand):
    help = (
        "Print pages of a text, make them as bad as scans are, have them recognised as the site does, and print the "
        "share of words that are wrong, for each way in which they were scanned."
    )
    # Neither the database nor any backend takes part.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("text", type=Path, help="A file of at least two pages of plain words.")
        parser.add_argument("--language", default="eng", help="The language of Tesseract's data (eng, nld).")
        parser.add_argument("--pages", type=int, default=2, help="Pages for each font.")
        parser.add_argument("--kind", choices=("PNG", "PDF"), default="PDF", help="What the scans are saved as.")

    def handle(self, *args: Any, **options: Any) -> None:
        pages = cut_pages(options["text"].read_text(encoding="utf-8"), options["pages"])
        if not pages or options["language"] not in tesseract.languages():
            raise CommandError("The text is empty, or the data of this language are not installed.")
        kind = options["kind"]
        for condition in CONDITIONS:
            errors = words = 0
            started = time.process_time()
            for seed, lines in enumerate(pages):
                for font in _FONTS:
                    file = as_file(scan(lines, font, condition, seed), kind, condition.dpi)
                    found, _ = tesseract.recognise(
                        file, 1, [options["language"]], is_picture=kind != "PDF", finds_orientation=False
                    )
                    expected = " ".join(lines).split()
                    errors += count_errors(expected, [word[0] for word in found["words"]])
                    words += len(expected)
            seconds = (time.process_time() - started) / (len(pages) * len(_FONTS))
            self.stdout.write(f"{condition.name:<36} {100 * errors / words:5.1f} %  {seconds:4.1f} s a page")
