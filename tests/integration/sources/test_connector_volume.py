"""How long records of a connector take, beside the same documents from a folder.

TEST_VOLUME=2000 .venv/bin/python -m pytest -s tests/integration/sources/test_connector_volume.py
"""

import json
import os
import statistics
import time

import pytest

from retrieval.sources.sync_runs import finish_in_process, request_run
from tests.support.sources import ConnectorRemote, FolderRemote, make_source, numbers

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("TEST_VOLUME" not in os.environ, reason="It measures: TEST_VOLUME=2000."),
]
PAIRS = int(os.environ.get("TEST_PAIRS", "3"))
# A connector may take so many times as long as a folder.
MOST_TIMES = 1.3
SENTENCE = "The pump {0} of depot {1} weighs {2} kilograms and is checked every {3} weeks by its keeper. "


def test_a_connector_takes_hardly_longer_than_a_folder(collection, tmp_path):
    total = int(os.environ["TEST_VOLUME"])
    folder, remote = FolderRemote(tmp_path / "shelf"), ConnectorRemote(tmp_path / "records")
    remote.choose("pages", sync_mode=os.environ.get("TEST_MODE", "full_refresh"))
    for number in range(total):
        text = "".join(SENTENCE.format(number, part, number % 97, part) for part in range(12))
        title = f"Page {number}"
        folder.put(f"page-{number}", f"# {title}\n\n{text}\n")
        record = {"id": str(number), "title": title, "body": text, "updated_at": f"{number:06}"}
        (remote.path / f"{number}.json").write_text(json.dumps(record))
    ratios = {"added": [], "unchanged": []}
    for pair in range(PAIRS):
        seconds = {}
        for kind, options in (("folder", folder.options), ("connector", remote.options)):
            source = make_source(collection, kind, options, name=f"{kind}-{pair}")
            for what in ratios:
                began = time.perf_counter()
                run = finish_in_process(request_run(source, enqueue=False))
                seconds[kind, what] = time.perf_counter() - began
                assert run.status == "done", run.error
                if what == "added":
                    assert numbers(run) == (total, 0, 0, 0, 0)
        for what, found in ratios.items():
            found.append(seconds["connector", what] / seconds["folder", what])
        told = ", ".join(f"{kind} {what} {value:.1f} s" for (kind, what), value in seconds.items())
        print(f"\n{total} documents: {told}", flush=True)
    for what, found in ratios.items():
        print(f"{what}: connector/folder {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})")
    assert statistics.median(ratios["added"]) <= MOST_TIMES
