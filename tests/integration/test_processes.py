"""The supervisor of the site's processes, with real ones; and the worker's pool."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ragsite.processes import machine
from ragsite.processes.supervision import parse_procfile, read_restarts
from tests.support.site import ROOT, wait_until

SLEEPER = "sleeper: sleep 1000"
DEAF = "deaf: sh -c \"trap '' TERM; while true; do sleep 0.1; done\""
LOADED = "loaded: python -m tests.support.loaded"
SCRIPT = r"""
import os, sys
from pathlib import Path
from ragsite.processes import machine
from ragsite.processes.supervision import parse_procfile, supervise
processes = parse_procfile(sys.argv[2], os.environ)
def say(line): os.write(1, f"{line}\n".encode())
def tick():
    if all(each.child for each in processes): say(f"child {' '.join(str(each.child.pid) for each in processes)}")
supervise(processes, {"ADDED": sys.argv[1] + "/added"}, Path(sys.argv[1]), say, tick, stop_seconds=2)
say("stopped")
"""


def is_alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def score(pid):
    """Return the process's oom_score_adj: Linux ends processes with high scores first when memory runs out."""
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def start(data_dir, procfile=SLEEPER, **environment):
    """Yield a function that starts a supervisor and returns it with the ids of its processes."""
    command = [sys.executable, "-c", SCRIPT, str(data_dir), procfile]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **environment})
    return process, [int(pid) for pid in process.stdout.readline().split()[1:]]


def test_a_procfile_is_read_with_its_variables():
    text = "# comment\n\nweb: serve --port $PORT 'two words'\nworker: work\n"
    assert [(p.name, p.command) for p in parse_procfile(text, {"PORT": "9"})] == [
        ("web", ["serve", "--port", "9", "two words"]),
        ("worker", ["work"]),
    ]


def test_the_projects_own_procfile_can_be_read():
    found = parse_procfile((ROOT / "Procfile").read_text(), {"HOST": "h", "PORT": "1"})
    assert [process.name for process in found] == ["web", "documents", "worker", "judgements", "beat", "slack", "model"]


def test_what_is_killed_is_started_again_and_counted(tmp_path):
    parent, [child] = start(tmp_path)
    if sys.platform == "linux":
        wait_until(lambda: score(child) == machine.SITE_SCORE, what="the score, which goes before the database's")
    psutil.Process(child).kill()
    lines = iter(parent.stdout.readline, "")
    said = next(line for line in lines if not line.startswith("child"))
    assert said == "sleeper ended with status -9; starting it again in 2 s.\n"
    again = next(int(line.split()[1]) for line in lines)
    assert is_alive(again)
    assert read_restarts(tmp_path) == {"sleeper": 1}
    parent.terminate()
    parent.communicate(timeout=60)
    assert not is_alive(again)


def test_a_signal_stops_parent_and_children_also_one_that_does_not_listen(tmp_path):
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
def test_children_do_not_outlive_a_killed_parent(tmp_path):
    # Another program of Python has the packages of this one, whatever the PATH says.
    imports = "import celery, sys, pathlib; pathlib.Path(sys.argv[1]).touch(); sys.stdin.read()"
    procfile = f"{DEAF}\n{LOADED}\nother: python -u -c '{imports}' {tmp_path}/imported"
    parent, children = start(tmp_path, procfile, PATH="/usr/bin:/bin")
    for name in ("added", "imported"):
        wait_until((tmp_path / name).exists)
    parent.kill()
    parent.wait(60)
    wait_until(lambda: not any(is_alive(child) for child in children))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes by such a score")
def test_a_higher_score_stays():
    def go():
        machine.raise_oom_score(900)
        machine.raise_oom_score(500)
        os._exit(score(os.getpid()) != 900)

    child = multiprocessing.get_context("fork").Process(target=go)
    child.start()
    child.join(60)
    assert child.exitcode == 0


POOL = """
import os, signal, sys, time
from celery.signals import worker_process_init
from ragsite.processes.worker_pool import TaskPool
def initializer(): worker_process_init.send(sender=None)
pool = TaskPool.BlockingPool(2, initializer=initializer)
def wait_until(is_true):
    ends = time.monotonic() + 30
    while not is_true() and time.monotonic() < ends: time.sleep(0.05)
def pids(): return {each.pid for each in pool._pool if each.is_alive()}
wait_until(lambda: len(pids()) == 2)
# One of them holds the lock, and waits for the next task.
killed = pids()
for pid in killed:
    os.kill(pid, signal.SIGKILL)
wait_until(lambda: len(pids() - killed) == 2)
results = [pool.apply_async(abs, (-number,)) for number in range(5)]
deadline = time.monotonic() + 20
while time.monotonic() < deadline and not all(each.ready() for each in results): time.sleep(0.1)
print([each.ready() and each.get() for each in results])
busy = sys.argv[1]
pool.apply_async(exec, (f"import pathlib, time; pathlib.Path({busy!r}).touch(); time.sleep(1000)",))
wait_until(lambda: os.path.exists(busy))
print(*(each.pid for each in pool._pool), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_of_the_pool_takes_no_lock_with_it_and_a_busy_one_does_not_outlive_its_worker(tmp_path):
    command = [sys.executable, "-c", POOL, str(tmp_path / "busy")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=False)
    results, pids = done.stdout.splitlines()
    assert results == "[0, 1, 2, 3, 4]"
    assert len(pids.split()) == 2
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids.split()))
