"""The supervisor of the site's processes, with real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from ragsite.processes import Supervisor, parse_procfile

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import os, sys
from pathlib import Path
from ragsite.processes import Supervisor, parse_procfile
processes = parse_procfile("sleeper: sleep 1000", os.environ)
supervisor = Supervisor(processes, os.environ, Path.cwd(), lambda line: print(line, flush=True))
def tick():
    if processes[0].popen: print("child", processes[0].popen.pid, flush=True)
supervisor.run(tick)
print("stopped", flush=True)
"""


def wait_until(condition: object, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "It did not happen in time."
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def start() -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    return process, int(process.stdout.readline().split()[1])


def test_a_procfile_is_read_with_its_variables() -> None:
    text = "# comment\n\nweb: serve --port $PORT 'two words'\nworker: work\n"
    assert [(p.name, p.command) for p in parse_procfile(text, {"PORT": "9"})] == [
        ("web", ["serve", "--port", "9", "two words"]),
        ("worker", ["work"]),
    ]


@pytest.mark.parametrize(("text", "message"), [("web", "Not a line"), ("web: run $NOPE", "NOPE, which is not set")])
def test_a_wrong_procfile_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_procfile(text, {})


def test_the_projects_own_procfile_can_be_read() -> None:
    names = [p.name for p in parse_procfile((ROOT / "Procfile").read_text(), {"HOST": "h", "PORT": "1"})]
    assert names == ["web", "worker", "beat"]


def test_what_is_killed_is_started_again() -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals need the main thread")
    said: list[str] = []
    (process,) = parse_procfile("sleeper: sleep 1000", {})
    supervisor = Supervisor([process], os.environ, ROOT, said.append)
    pids: list[int] = []

    def tick() -> None:
        if process.popen is not None and process.popen.pid not in pids:
            pids.append(process.popen.pid)
            if len(pids) == 1:
                process.popen.kill()
            else:
                supervisor.stop()

    supervisor.run(tick)
    assert len(pids) == 2
    assert said == ["sleeper ended with status -9; starting it again in 2 s."]
    assert not is_alive(pids[1])


def test_a_signal_stops_parent_and_child() -> None:
    parent, child = start()
    parent.send_signal(signal.SIGTERM)
    output, _ = parent.communicate(timeout=60)
    assert output.endswith("stopped\n")
    assert parent.returncode == 0
    assert not is_alive(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_children_do_not_outlive_a_killed_parent() -> None:
    parent, child = start()
    parent.kill()
    parent.wait(60)
    wait_until(lambda: not is_alive(child))


def test_a_child_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragsite.processes.STOP_SECONDS", 1)
    deaf = textwrap.dedent(
        """
        import signal, time, pathlib, sys
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
        """
    )
    process = parse_procfile("deaf: x", {})[0]
    process.command = [sys.executable, "-c", deaf]
    supervisor = Supervisor([process], os.environ, ROOT, print)
    ticks = []

    def tick() -> None:
        ticks.append(1)
        if len(ticks) > 3:
            supervisor.stop()

    supervisor.run(tick)
    assert process.popen is not None
    assert not is_alive(process.popen.pid)
