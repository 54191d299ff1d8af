"""A connector is a process that may hang, die, flood or lie: what it printed is read within limits, or not at all."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from retrieval.sources.airbyte.connector_process import ConnectorProcess, ProcessLimits
from retrieval.sources.protocol import SourceUnavailable, SourceUnreadable
from tests.support import fake_connector

TOKEN = "t0p-secret-token"
CATALOG = json.dumps({"streams": [{"stream": fake_connector.STREAM, "sync_mode": "full_refresh"}]})


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    for number in range(4):
        (place / f"{number}.json").write_text(json.dumps({"id": str(number)}))
    return place


@pytest.fixture
def call(folder, tmp_path):
    def make(mood="", token=TOKEN, call="read", **limits):
        config = {"folder": str(folder), "token": token, "mood": mood}
        files = {"--config": json.dumps(config), "--catalog": CATALOG}
        command = [sys.executable, fake_connector.__file__, call]
        limits = ProcessLimits(**{"seconds": 20.0, **limits})
        return ConnectorProcess(command, files, scratch=tmp_path / "scratch", secrets=[token], limits=limits)

    return make


def read(process):
    """Return the numbers of the records, the error, and what the log has."""
    found, error = [], None
    with process:
        try:
            for message in process.iterate_messages():
                if message["type"] == "RECORD":
                    found.append(message["record"]["data"]["id"])
        except (SourceUnreadable, SourceUnavailable) as raised:
            error = raised
    return found, error, "\n".join(process.notes)


def command_lines():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_bytes()


def test_all_records_are_read_and_nothing_is_left(call, tmp_path):
    found, error, notes = read(call())
    assert (found, error) == (["0", "1", "2", "3"], None)
    assert notes == "INFO: Signing in with •••"
    assert [*(tmp_path / "scratch").iterdir()] == []


@pytest.mark.parametrize(
    ("mood", "limits", "kind", "said"),
    [
        ("hangs", {"seconds": 1.0}, SourceUnavailable, "took longer than 1 seconds"),
        ("dies", {}, SourceUnavailable, "status 3: out of luck with •••"),
        ("stutters", {}, SourceUnreadable, "a record that cannot be read"),
        ("swells", {}, SourceUnreadable, "larger than 16384 KiB"),
        ("floods", {"total_bytes": 1 << 20}, SourceUnreadable, "sends more than 1 MiB"),
        ("eats", {}, SourceUnavailable, "MemoryError"),
        ("gives up", {}, SourceUnavailable, "could not read everything"),
    ],
)
def test_a_reading_that_goes_wrong_is_an_error(call, tmp_path, mood, limits, kind, said):
    begun = time.monotonic()
    _found, error, notes = read(call(mood, **limits))
    assert isinstance(error, kind), error
    assert said in str(error)
    assert TOKEN not in f"{error} {notes}"
    assert time.monotonic() - begun < 10
    assert [*(tmp_path / "scratch").iterdir()] == []


def test_text_between_the_records_is_for_the_log(call):
    found, error, notes = read(call("chatters"))
    assert (len(found), error) == (4, None)
    assert notes.splitlines() == [
        "WARN: slow •••",
        "INFO: Signing in with •••",
        "INFO: This is no JSON, with •••",
    ]


def test_an_error_of_the_settings_is_no_reason_to_try_again(call):
    _found, error, notes = read(call(token="wrong-token"))
    assert isinstance(error, SourceUnreadable)
    assert "The server refused the token •••" in str(error)
    assert "wrong-token" not in notes


def test_a_process_that_it_leaves_behind_is_ended_with_it(call):
    begun = time.monotonic()
    found, error, _notes = read(call("leaves"))
    assert (len(found), error) == (4, None)
    assert time.monotonic() - begun < 10
    ends_at = time.monotonic() + 5
    while any(b"time.sleep(600)" in line for line in command_lines()):
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def test_it_sees_none_of_the_sites_variables(call, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setenv("DATABASE_URL", "x")
    _found, error, notes = read(call("shows"))
    assert error is None
    names = set(notes.splitlines()[0].removeprefix("WARN: ").split())
    assert {"PATH", "HOME"} <= names
    assert not {"SECRET_KEY", "DATABASE_URL", "DATA_DIR"} & names


def test_a_killed_parent_takes_it_along_and_the_next_call_removes_its_folder(call, tmp_path, folder):
    code = f"""
import sys; sys.path[:0] = {sys.path!r}
from pathlib import Path
from retrieval.sources.airbyte.connector_process import ConnectorProcess
import json
config = {{"folder": {str(folder)!r}, "token": {TOKEN!r}, "mood": "hangs"}}
files = {{"--config": json.dumps(config), "--catalog": {CATALOG!r}}}
command = [sys.executable, {fake_connector.__file__!r}, "read"]
with ConnectorProcess(command, files, scratch=Path({str(tmp_path / "scratch")!r})) as process:
    for message in process.iterate_messages():
        print(process._process.pid, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    ends_at = time.monotonic() + 5
    while Path(f"/proc/{pid}/cmdline").exists() and b"fake" in Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < ends_at
        time.sleep(0.05)
    (orphan,) = (tmp_path / "scratch").iterdir()
    assert [*orphan.iterdir()] == [], "Its settings are on no disk."
    os.utime(orphan, (0, 0))
    assert read(call())[1] is None
    assert not orphan.exists()
