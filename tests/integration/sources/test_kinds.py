"""Each kind of source against its real server: its items become documents, and stay in sync."""

import json
import re
import socket

import pytest

from retrieval.models import Document, SourceRun
from retrieval.sources.kinds import KINDS
from retrieval.sources.states import SourceState, find_source_status
from retrieval.sources.sync_runs import attempt_source_run
from tests.support.sources import make_source, names, numbers, remote_of, run_once

pytestmark = pytest.mark.django_db


@pytest.fixture(params=sorted(name for name, kind in KINDS.items() if kind.is_read))
def remote(request, tmp_path):
    with remote_of(request.param, tmp_path) as made:
        yield made


def test_documents_follow_what_the_source_holds(remote, collection):
    for name in "abcdef":
        remote.put(name, f"The pump {name} weighs 30 kilograms.")
    source = make_source(collection, remote.kind, remote.options)

    preview = run_once(source, is_preview=True)
    assert (numbers(preview), names()) == ((6, 0, 0, 0, 0), []), preview.details
    run = run_once(source)
    assert (run.status, numbers(run)) == ("done", (6, 0, 0, 0, 0)), (run.error, run.details)
    assert len(names()) == 6
    assert all(name.startswith("Shelf/") for name in names())
    assert Document.objects.filter(origin=source).count() == 6
    assert all(document.file.read() for document in Document.objects.all())

    remote.reads()
    run = run_once(source)
    assert (numbers(run), remote.reads()) == ((0, 0, 6, 0, 0), []), run.details

    remote.put("b", "The pump b weighs 31 kilograms, since it was repaired.")
    run = run_once(source)
    # A mailbox gets another message instead.
    expected = (1, 0, 6, 0, 0) if remote.kind == "mailbox" else (0, 1, 5, 0, 0)
    assert numbers(run) == expected, run.details
    if remote.kind == "mailbox":
        (remote.folder / "2-b.eml").unlink()
        assert numbers(run_once(source)) == (0, 0, 6, 1, 0)
    assert len(names()) == 6

    remote.delete("c")
    remote.put("g", "The pump g is new.")
    run = run_once(source)
    # A feed does not say that something is gone.
    forgets = KINDS[remote.kind].lists_everything
    assert numbers(run) == (1, 0, 5, int(forgets), 0), run.details
    assert len(names()) == 6 + (not forgets)

    if remote.wrong_options:
        run = run_once(make_source(collection, remote.kind, remote.wrong_options, name="Other"))
        assert run.status == "failed", run.error
        assert "refused" in run.error
        assert "wrong" not in f"{run.error} {run.details}"

    before = names()
    remote.go_away()
    run = run_once(source)
    assert run.status == "waiting", run.error
    assert run.error
    assert run.retry_at is not None
    assert names() == before


def test_a_server_that_says_nothing_is_left(remote, collection, settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        ports = re.compile(r'(?<=127\.0\.0\.1:)\d+|(?<="port": )\d+')
        options = json.loads(ports.sub(port, json.dumps(remote.options)))
        if options == remote.options:
            pytest.skip("It has no server.")
        settings.SOURCE_TIMEOUT_SECONDS = 0.2
        source = make_source(collection, remote.kind, options)
        run = run_once(source)
        assert (run.status, run.retry_at is not None) == ("waiting", True)
        assert re.search("in time|timed out", run.error), run.error
        SourceRun.objects.update(attempts=2)
        assert (ended := attempt_source_run(run.pk)) is not None
    assert (ended.status, find_source_status(source).state) == ("failed", SourceState.FAILED)
