"""Read all files below a folder with this site and a second program, and name those in which this site lost words.

``python -m bench.reading.sweep FOLDER``. The second program is the library xberg for Office files, OpenDocument, books
and markup, and pypdf for PDF files if it is installed. A file is named if this site reports no problem in reading, but
lacks more than two of the second program's words, and more than 0.5 % of them. The second program may be
wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import django

from bench.reading.words import list_words
from bench.reporting import format_markdown_table

_BY_ENGINE = frozenset(
    """
    docx docm dotx pptx pptm ppsx potx xlsx xlsm xlsb xls ods odt odp epub rtf doc ppt ipynb org adoc tex fb2 html
    htm eml msg csv vtt
    """.split()  # noqa: SIM905
)
_STYLE = re.compile(r"\[style_name: [^\]]*\]")
_FRONT_MATTER = re.compile(r"\A---\n(?:[^\n]*\n){0,60}?\n## title: [^\n]*\n")
_LARGEST = 20_000_000
_MOST_LOST, _LOST_SHARE = 2, 0.005
_SECONDS, _MEMORY_MIB = 60, 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--formats", nargs="*", help="only files with these endings")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    django.setup()
    from retrieval.documents import formats

    known = {extension for each in formats.read_formats() for extension in each.extensions}
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    slowest = (0.0, "")
    for path in sorted(options.folder.rglob("*")):
        ending = path.suffix[1:].casefold()
        wanted = options.formats or known
        if not path.is_file() or ending not in wanted or ending not in _BY_ENGINE | {"pdf"}:
            continue
        if not 0 < path.stat().st_size < _LARGEST:
            continue
        begun = time.perf_counter()
        outcome, detail = compare_readers(path, ending)
        slowest = max(slowest, (time.perf_counter() - begun, str(path)))
        outcomes[ending][outcome] += 1
        if outcome in ("silent", "crash"):
            print(f"{outcome}: {path}: {detail}", flush=True)
    kinds = ("whole", "named", "refused", "silent", "crash", "alone")
    rows = [
        (ending, sum(counts.values()), *(counts[kind] for kind in kinds)) for ending, counts in sorted(outcomes.items())
    ]
    total = sum(outcomes.values(), Counter())
    rows.append(("all", total.total(), *(total[kind] for kind in kinds)))
    print(
        format_markdown_table(
            ("format", "files", "whole", "loss named", "refused", "silent loss", "crash", "no second reader"), rows
        )
    )
    print(f"slowest: {slowest[0]:.1f} s, {slowest[1]}")


def compare_readers(path: Path, ending: str) -> tuple[str, str]:
    from retrieval.documents.extraction.completeness import find_lost_words
    from retrieval.documents.extraction.sandboxed import build_sandbox_limits, extract_in_sandbox
    from retrieval.exceptions import DocumentRejected
    from retrieval.text.extracted import ExtractionLimits

    data, limits = path.read_bytes(), ExtractionLimits()
    try:
        within = build_sandbox_limits(_MEMORY_MIB, _SECONDS, limits, len(data))
        found = extract_in_sandbox(data, path.name, limits=limits, job_limits=within)
    except DocumentRejected as error:
        is_crash = "reading it" in str(error)
        return ("crash" if is_crash else "refused"), str(error)
    second = read_with_second_reader(path, ending)
    if second is None:
        return "alone", ""
    words = list(dict.fromkeys(list_words(_STYLE.sub(" ", _FRONT_MATTER.sub("", second)))))
    members = " ".join(member.name for member in found.members)
    lost = find_lost_words(" ".join(words), " ".join(list_words(f"{found.text} {found.title} {members}")))
    if len(lost) <= max(_MOST_LOST, _LOST_SHARE * len(words)):
        return "whole", ""
    if found.left_out or found.unread_pages:
        return "named", ""
    return "silent", f"{len(lost)} of {len(words)}: {' '.join(lost[:12])}"


def read_with_second_reader(path: Path, ending: str) -> str | None:
    try:
        if ending == "pdf":
            import pypdf

            return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
        import xberg

        file = xberg.ExtractInput(uri=str(path))
        settings = xberg.ExtractionConfig(output_format="markdown", disable_ocr=True, use_cache=False)

        async def extract_with_xberg() -> Any:
            return await xberg.extract(file, settings)

        return "\n".join(document.content or "" for document in asyncio.run(extract_with_xberg()).results) or None
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001 - a second reader may raise anything
        print(f"the second reader failed: {path}: {type(error).__name__}")
        return None


if __name__ == "__main__":
    main()
