"""Measure how many of the expected words the site extracts from public files.

``python -m bench.reading.ground_truth FOLDER`` reads a checkout of https://github.com/xberg-io/test_documents: each
text below ``ground_truth/FORMAT/`` is compared with the file of the same name and format. ``--reader engine`` measures
only the library xberg, without the site's own code; ``--part`` measures one half of the files. The authors of xberg
made the set.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import django

from bench.reading.words import WordMatchCounts, compare_words, list_words
from bench.reporting import format_markdown_table

SAME_FORMAT = {
    "latex": ("tex", "latex"),
    "tex": ("tex",),
    "markdown": ("md", "markdown"),
    "asciidoc": ("adoc", "asciidoc"),
    "html": ("html", "htm"),
    "htm": ("htm", "html"),
}
_LEAST_WORDS = 5


def pair_files_with_expected_texts(folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """Yield the format of each file, its path, and the path of its expected text.

    The expected text is a ``.md`` file, or a ``.txt`` file if there is no ``.md`` file. Files without either are left
    out.
    """
    files: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "ground_truth" not in path.parts and "groundtruth" not in path.parts:
            files.setdefault((path.stem.casefold(), path.suffix[1:].casefold()), path)
    for directory in sorted((folder / "ground_truth").iterdir()):
        if not directory.is_dir():
            continue
        for expected in sorted({path.with_suffix("") for path in directory.iterdir()}):
            text = next(
                (path for ending in (".md", ".txt") if (path := Path(f"{expected}{ending}")).exists()),
                None,
            )
            names = SAME_FORMAT.get(directory.name, (directory.name,))
            file = next((files[key] for name in names if (key := (expected.name.casefold(), name)) in files), None)
            if text and file:
                yield names[0], file, text


def assign_file_to_half(path: Path) -> str:
    """Return the half to which a file belongs, "shaping" (to develop) or "judging" (to test), by a hash of its name."""
    return "judging" if hashlib.sha256(path.name.encode()).digest()[0] % 2 else "shaping"


def read_file_text(path: Path, reader: str) -> str:
    if reader == "engine":
        import xberg

        file, settings = xberg.ExtractInput(uri=str(path)), xberg.ExtractionConfig(disable_ocr=True, use_cache=False)
        found = asyncio.run(_await(xberg.extract, file, settings))
        return "\n\n".join(document.content or "" for document in found.results)
    from retrieval.documents.extraction import extract

    found = extract(path.read_bytes(), path.name)
    members = (extract(member.data, member.name).text for member in found.members)
    return "\n\n".join([found.text, *members])


async def _await(function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    return await function(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reader", choices=("site", "engine"), default="site")
    parser.add_argument("--part", choices=("shaping", "judging", "both"), default="judging")
    parser.add_argument("--formats", nargs="*", help="only these, by the names of the folders")
    parser.add_argument("--verbose", action="store_true", help="name each file that misses words")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    django.setup()
    sums: dict[str, WordMatchCounts] = defaultdict(lambda: WordMatchCounts(0, 0, 0))
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for kind, path, expected in pair_files_with_expected_texts(options.folder):
        wanted = expected.read_text(encoding="utf-8", errors="replace")
        if (
            (options.formats and kind not in options.formats)
            or options.part not in ("both", assign_file_to_half(path))
            or len(list_words(wanted)) < _LEAST_WORDS
        ):
            continue
        counts[kind][0] += 1
        try:
            text = read_file_text(path, options.reader)
        except Exception as error:  # noqa: BLE001 - a file that is not read counts as one without words
            counts[kind][1] += 1
            text = ""
            if options.verbose:
                print(f"{path}: {type(error).__name__}: {error}")
        agreement = compare_words(wanted, text)
        sums[kind] += agreement
        if options.verbose and agreement.found < agreement.expected:
            print(f"{agreement.found / agreement.expected:6.1%} of {agreement.expected} words: {path}")
    rows = [
        (
            kind,
            counts[kind][0],
            counts[kind][1],
            f"{total.found / total.expected:.1%}",
            f"{total.distinct_found / total.distinct:.1%}",
            f"{total.found / total.written:.1%}" if total.written else "–",
            f"{total.cells_found} of {total.cells}",
        )
        for kind, total in sorted(sums.items())
    ]
    print(
        format_markdown_table(
            ("format", "files", "not read", "expected words found", "distinct ones", "found words expected", "cells"),
            rows,
        )
    )


if __name__ == "__main__":
    main()
