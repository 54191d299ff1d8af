"""How long records of a connector take, beside the same documents from a folder.

TEST_VOLUME=2000 .venv/bin/python -m pytest -s tests/integration/sources/test_connector_volume.py

Both are read at the same time, into a collection each, so that what else the machine does slows both.
"""

import json
import os
import statistics

import pytest

from retrieval.models import Collection, SourceRun
from tests.support.site import SiteProcess
from tests.support.sources import ConnectorRemote, FolderRemote, make_source, numbers

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("TEST_VOLUME" not in os.environ, reason="It measures: TEST_VOLUME=2000."),
]
PAIRS = int(os.environ.get("TEST_PAIRS", "1"))
# A connector may take so many times as long as a folder.
MOST_TIMES = 1.3
SENTENCE = "The pump {0} of depot {1} weighs {2} kilograms and is checked every {3} weeks by its keeper. "


def test_a_connector_takes_hardly_longer_than_a_folder(tmp_path, settings):
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
        sources = []
        for each in (folder, remote):
            collection = Collection.objects.create(slug=f"{each.kind}-{pair}", name=f"{each.kind} {pair}")
            sources.append(make_source(collection, each.kind, each.options, name=f"{each.kind}-{pair}"))
        for what, found in ratios.items():
            runs = read_at_once(sources, tmp_path, settings)
            assert {numbers(run) for run in runs} == {(total, 0, 0, 0, 0) if what == "added" else (0, 0, total, 0, 0)}
            found.append(runs[1].seconds / runs[0].seconds)
            print(f"\n{total} {what}: folder {runs[0].seconds:.1f} s, connector {runs[1].seconds:.1f} s", flush=True)
    for what, found in ratios.items():
        print(f"{what}: connector/folder {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})")
    assert statistics.median(ratios["added"]) <= MOST_TIMES


def read_at_once(sources, tmp_path, settings):
    allowed = {"SOURCE_FOLDERS": str(tmp_path), "SOURCE_CONNECTORS": "true", "DATA_DIR": str(settings.DATA_DIR)}
    processes = [
        SiteProcess(["django", "sync", source.name, "--json"], tmp_path / f"{source.name}.log", **allowed)
        for source in sources
    ]
    for process in processes:
        assert process.popen.wait() == 0, process.log.read_text()[-2000:]
        process.stop()
    return [SourceRun.objects.filter(source=source).first() for source in sources]
