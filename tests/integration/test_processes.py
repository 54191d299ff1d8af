"""The supervisor of the site's processes, with real ones; and the worker's pool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ragsite.supervision import parse_procfile, restarts
from tests.support.site import ROOT, wait_until

SLEEPER = "sleeper: sleep 1000"
DEAF = "deaf: sh -c \"trap '' TERM; while true; do sleep 0.1; done\""
LOADED = "loaded: python -m tests.support.loaded"
SCRIPT = r"""
import os, sys
from pathlib import Path
from ragsite.supervision import parse_procfile, supervise
processes = parse_procfile(sys.argv[2], os.environ)
def say(line): os.write(1, f"{line}\n".encode())
def tick():
    if all(each.child for each in processes): say(f"child {' '.join(str(each.child.pid) for each in processes)}")
supervise(processes, {"ADDED": sys.argv[1] + "/added"}, Path(sys.argv[1]), say, tick, stop_seconds=2)
say("stopped")
"""


def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def start(data_dir: Path, procfile: str = SLEEPER, **environment: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A supervisor, and the ids of the processes that it has started."""
    command = [sys.executable, "-c", SCRIPT, str(data_dir), procfile]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **environment})
    assert process.stdout is not None
    return process, [int(pid) for pid in process.stdout.readline().split()[1:]]


def test_a_procfile_is_read_with_its_variables() -> None:
    text = "# comment\n\nweb: serve --port $PORT 'two words'\nworker: work\n"
    assert [(p.name, p.command) for p in parse_procfile(text, {"PORT": "9"})] == [
        ("web", ["serve", "--port", "9", "two words"]),
        ("worker", ["work"]),
    ]


def test_the_projects_own_procfile_can_be_read() -> None:
    found = parse_procfile((ROOT / "Procfile").read_text(), {"HOST": "h", "PORT": "1"})
    assert [process.name for process in found] == ["web", "worker", "beat", "model"]


def test_what_is_killed_is_started_again_and_counted(tmp_path: Path) -> None:
    parent, [child] = start(tmp_path)
    psutil.Process(child).kill()
    assert parent.stdout is not None
    lines = iter(parent.stdout.readline, "")
    said = next(line for line in lines if not line.startswith("child"))
    assert said == "sleeper ended with status -9; starting it again in 2 s.\n"
    again = next(int(line.split()[1]) for line in lines)
    assert is_alive(again)
    assert restarts(tmp_path) == {"sleeper": 1}
    parent.terminate()
    parent.communicate(timeout=60)
    assert not is_alive(again)


def test_another_program_of_python_has_the_packages_of_this_one(tmp_path: Path) -> None:
    imports = "import celery, sys, pathlib; pathlib.Path(sys.argv[1]).touch(); sys.stdin.read()"
    parent, _child = start(tmp_path, f"other: python -u -c '{imports}' {tmp_path}/imported", PATH="/usr/bin:/bin")
    try:
        wait_until((tmp_path / "imported").exists)
    finally:
        parent.terminate()
        parent.communicate(timeout=60)


def test_a_signal_stops_parent_and_children_also_one_that_does_not_listen(tmp_path: Path) -> None:
    parent, children = start(tmp_path, f"{DEAF}\n{LOADED}")
    # The shell sets its trap; a module runs in the fork itself, with the environment of the supervisor.
    wait_until((tmp_path / "added").exists)
    parent.send_signal(signal.SIGTERM)
    output, _ = parent.communicate(timeout=60)
    assert output.endswith("stopped\n")
    assert (tmp_path / "added").read_text().endswith("loaded.py")
    assert parent.returncode == 0
    assert not any(is_alive(child) for child in children)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_children_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    parent, children = start(tmp_path, f"{DEAF}\n{LOADED}")
    wait_until((tmp_path / "added").exists)
    parent.kill()
    parent.wait(60)
    wait_until(lambda: not any(is_alive(child) for child in children))


POOL = """
import os, signal, sys, time
from celery.signals import worker_process_init
from ragsite.worker_pool import TaskPool
def initializer(): worker_process_init.send(sender=None)
pool = TaskPool.BlockingPool(2, initializer=initializer)
time.sleep(1)
match sys.argv[1]:
    case "idle":
        # One of them holds the lock, and waits for the next task.
        for each in list(pool._pool):
            os.kill(each.pid, signal.SIGKILL)
        time.sleep(1)
        results = [pool.apply_async(abs, (-number,)) for number in range(5)]
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not all(each.ready() for each in results): time.sleep(0.1)
        print([each.ready() and each.get() for each in results], flush=True)
    case "busy":
        pool.apply_async(time.sleep, (1000,))
        time.sleep(1)
        print(*(each.pid for each in pool._pool), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def run_pool(what: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", POOL, what], stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=False
    ).stdout


def test_a_killed_process_of_the_pool_takes_no_lock_with_it() -> None:
    assert run_pool("idle") == "[0, 1, 2, 3, 4]\n"


def test_a_busy_process_of_the_pool_does_not_outlive_its_worker() -> None:
    pids = [int(pid) for pid in run_pool("busy").split()]
    assert len(pids) == 2
    wait_until(lambda: not any(is_alive(pid) for pid in pids))
