"""Upload hostile files at once, with harmless files among them.

.venv/bin/python -m bench.reliability.zoo [--clones 0] [--watch 90] [--port 8000]
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.reliability.running_site import (
    RunningSite,
    format_seconds,
    generate_distinct_questions,
    percentile,
    running_site,
)
from bench.reporting import format_markdown_table
from tests.support import bombs

READY_WITHIN_SECONDS = 10.0
PAGES_WITHIN_SECONDS = 1.0
PROBE_SECONDS = 0.2
UPLOADS_AT_ONCE = 4
SEARCH = "/api/v1/search/"
PAGES = ("/healthz", "/", SEARCH)
File = tuple[str, bytes]


def make_harmless_files(file_prefix: str) -> list[File]:
    words = f"The {file_prefix} valve closes at 6 bar. It is opened by hand, and oiled once a year.\n\n"
    page = b"BT /F1 11 Tf 60 700 Td (The %s valve closes at 6 bar.) Tj ET\n" % file_prefix.encode()
    # A picture makes the file as large as one that Word saves.
    word = bombs.docx(bombs.paragraph(words.encode()) * 20, more={"word/media/photo.bin": os.urandom(36_000)})
    return [
        (f"{file_prefix}.md", f"# Valve\n\n{words}".encode()),
        (f"{file_prefix}.pdf", bombs.pdf(bombs.page(page))),
        (f"{file_prefix}.docx", word),
        (f"{file_prefix}-long.txt", "".join(f"Part {n}. {words}" for n in range(400)).encode()),
    ]


def make_hostile_files(clone_count: int) -> list[File]:
    files = [(f"{name}-{bomb.file_name}", bomb.made()) for name, bomb in bombs.BOMBS.items()]
    return files + [(f"clone-{n}.pdf", bombs.pdf_endless() + b"%%%d" % n) for n in range(clone_count)]


class SiteProber:
    def __init__(self, site: RunningSite) -> None:
        self._site = site
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._probe_path_repeatedly, args=(path,)) for path in PAGES]
        self._questions = generate_distinct_questions("zoo ")
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failures: list[str] = []

    def __enter__(self) -> SiteProber:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _probe_path_repeatedly(self, path: str) -> None:
        while not self._ended.wait(PROBE_SECONDS):
            started = time.monotonic()
            asked = self._site.get(path) if path != SEARCH else self._site.post(path, {"query": next(self._questions)})
            self.seconds[path].append(time.monotonic() - started)
            if asked.status != 200:
                self.failures.append(f"{path}: status {asked.status}")


def mix_in_innocent_files(hostile: list[File]) -> Iterator[File]:
    yield from hostile[: len(hostile) // 2]
    yield from make_harmless_files("middle")
    yield from hostile[len(hostile) // 2 :]
    yield from make_harmless_files("last")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clones", type=int, default=0, help="More hostile files, each of 3 kB and without end.")
    parser.add_argument("--watch", type=float, default=90.0, help="Seconds to look on after the last upload.")
    parser.add_argument("--port", type=int, default=8234)
    given = parser.parse_args()
    hostile = make_hostile_files(given.clones)
    with running_site(given.port) as site:
        from django.contrib.auth import get_user_model

        from core.key_limits import KeyScope
        from ragsite.accounts.keys import issue_key
        from retrieval.models import Collection, Document, Visibility

        Collection.objects.create(slug="zoo", name="Zoo", visibility=Visibility.PUBLIC)
        key = issue_key(get_user_model().objects.create_superuser("zoo"), "zoo", list(KeyScope)).secret
        for name, data in [file for mark in ("first", "second") for file in make_harmless_files(mark)]:
            site.upload("zoo", name, data, key)
        open_ones = Document.objects.filter(collection__slug="zoo", status__in=["pending", "processing"])
        site.wait(lambda: not open_ones.exists(), 60)
        refused: dict[str, str] = {}

        def upload(file: File) -> None:
            reply = site.upload("zoo", *file, key)
            if reply.status != 202:
                refused[file[0]] = reply.body["rejected"][0]["error"] if reply.body else f"status {reply.status}"

        with SiteProber(site) as probes:
            started = time.monotonic()
            with ThreadPoolExecutor(UPLOADS_AT_ONCE) as uploaders:
                list(uploaders.map(upload, mix_in_innocent_files(hostile)))
            uploaded_after = time.monotonic() - started
            site.wait(lambda: not open_ones.exists(), given.watch)
        documents = {each.source: each for each in Document.objects.filter(collection__slug="zoo")}

    def measure_wait(name: str) -> float | None:
        each = documents.get(name)
        return (each.ingested_at - each.created_at).total_seconds() if each and each.ingested_at else None

    times = {name: measure_wait(name) for mark in ("middle", "last") for name, _ in make_harmless_files(mark)}
    print(f"{len(hostile)} hostile files uploaded in {uploaded_after:.1f} s; load {os.getloadavg()[0]:.1f}.\n")
    print(
        format_markdown_table(
            ["innocent file", "ready after"], [[name, format_seconds(took)] for name, took in times.items()]
        )
        + "\n"
    )
    rows = [
        [f"`{path}`", len(took), *(format_seconds(percentile(took, p)) for p in (50, 95, 100))]
        for path, took in probes.seconds.items()
    ]
    print(format_markdown_table(["page", "asked", "p50", "p95", "max"], rows) + "\n")
    fates = []
    for name, data in hostile:
        each = documents.get(name)
        how = each.get_status_display() if each else "refused"
        ended = ((each.ingested_at or each.updated_at) - each.created_at).total_seconds() if each else None
        what = f"{each.chunk_count:,} passages" if each and each.ingested_at else each.error if each else refused[name]
        fates.append([name, f"{len(data):,}", how, format_seconds(ended), what])
    print(format_markdown_table(["hostile file", "bytes", "", "after", ""], fates))
    for failure in probes.failures:
        print(f"- {failure}")
    are_ready = all(took is not None and took <= READY_WITHIN_SECONDS for took in times.values())
    are_quick = all((percentile(took, 95) or 0.0) <= PAGES_WITHIN_SECONDS for took in probes.seconds.values())
    raise SystemExit(0 if are_ready and are_quick and not probes.failures else 1)


if __name__ == "__main__":
    main()
