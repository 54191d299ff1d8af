"""The supervisor of the site's processes, with real ones."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path

import psutil
import pytest

from ragsite.supervision.processes import Supervisor, parse_procfile
from ragsite.supervision.watchdog import HttpProbe, Watchdog, ask_status
from tests.support.site import free_port

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import os, sys
from pathlib import Path
from ragsite.supervision.processes import Supervisor, parse_procfile
processes = parse_procfile(sys.argv[1] if sys.argv[1:] else "sleeper: sleep 1000", os.environ)
supervisor = Supervisor(processes, os.environ, Path.cwd(), lambda line: print(line, flush=True))
def tick():
    if processes[0].child: print("child", processes[0].child.pid, flush=True)
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


def start(*arguments: str) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT)
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
        if process.child is not None and process.child.pid not in pids:
            pids.append(process.child.pid)
            if len(pids) == 1:
                process.child.kill()
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
@pytest.mark.parametrize("arguments", [(), ("deaf: sh -c \"trap '' TERM; while true; do sleep 0.1; done\"",)])
def test_children_do_not_outlive_a_killed_parent(arguments: tuple[str, ...]) -> None:
    parent, child = start(*arguments)
    time.sleep(0.5)  # the shell sets its trap
    parent.kill()
    parent.wait(60)
    wait_until(lambda: not is_alive(child))


POOL = """
import os, signal, sys, time
from celery.signals import worker_process_init
from ragsite.supervision.worker_pool import TaskPool
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


def test_a_child_that_does_not_listen_is_killed() -> None:
    deaf = textwrap.dedent(
        """
        import signal, time, pathlib, sys
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
        """
    )
    process = parse_procfile("deaf: x", {})[0]
    process.command = [sys.executable, "-c", deaf]
    supervisor = Supervisor([process], os.environ, ROOT, print, stop_seconds=1)
    ticks = []

    def tick() -> None:
        ticks.append(1)
        if len(ticks) > 3:
            supervisor.stop()

    supervisor.run(tick)
    assert process.child is not None
    assert not is_alive(process.child.pid)


ANSWERING = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *args): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def is_answering(port: int) -> bool:
    return ask_status("127.0.0.1", port, "/healthz", {}, timeout_seconds=0.5) is not None


def test_a_process_that_stops_answering_is_killed_and_replaced() -> None:
    port = free_port()
    said: list[str] = []
    (process,) = parse_procfile("web: x", {})
    process.command = [sys.executable, "-c", ANSWERING, str(port)]
    probe = HttpProbe(socket.AF_INET, ("127.0.0.1", port), timeout_seconds=0.5)
    process.watchdog = Watchdog(probe, silent_seconds=2, every_seconds=0.1)
    supervisor = Supervisor([process], os.environ, ROOT, said.append)
    pids: list[int] = []
    ticks: list[int] = []
    deadline = time.monotonic() + 60

    def tick() -> None:
        assert time.monotonic() < deadline, said
        assert process.child is not None or pids
        if process.child is not None and is_answering(port):
            if process.child.pid not in pids:
                pids.append(process.child.pid)
            ticks.append(1)
            if len(pids) == 1 and len(ticks) < 4:
                return  # the watchdog has had its first answer by then
            if len(pids) == 1:
                process.child.send_signal(signal.SIGSTOP)
            else:
                supervisor.stop()

    supervisor.run(tick)
    assert len(pids) == 2
    assert "web has not answered for" in said[0]
    assert "web ended with status -9" in said[1]
    assert process.restarts == {"hung": 1}
    assert not any(is_alive(pid) for pid in pids)


class Answers:
    """A probe that is answered as ``comes`` says, at once."""

    def __init__(self, comes: Iterable[bool]) -> None:
        self._comes = iter(comes)

    def begin(self) -> None:
        pass

    def answered(self) -> bool:
        return next(self._comes)


def ask(watchdog: Watchdog) -> None:
    watchdog.look()
    watchdog.look()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_busy_process_is_left_alone_as_long_as_some_answer_comes() -> None:
    clock = Clock()
    comes = Answers([True, *[False, False, False, False, True] * 20])
    watchdog = Watchdog(comes, silent_seconds=15, clock=clock)
    for _ in range(101):
        clock.now += 2.9
        ask(watchdog)
        assert watchdog.silence() == 0


def test_a_watchdog_that_could_not_ask_itself_kills_nothing() -> None:
    clock = Clock()
    watchdog = Watchdog(Answers([True, False, False, False]), silent_seconds=15, every_seconds=0.0, clock=clock)
    ask(watchdog)
    clock.now = 3600.0  # the machine slept, or was so busy that the supervisor stood still
    assert watchdog.silence() == 0
    for _ in range(3):
        ask(watchdog)
    assert watchdog.silence() == 3600


def test_a_process_that_begins_is_given_time() -> None:
    clock = Clock()
    watchdog = Watchdog(Answers(repeat(False)), silent_seconds=15, grace_seconds=120, clock=clock)
    for _ in range(23):
        clock.now += 5
        ask(watchdog)
        assert watchdog.silence() == 0
    clock.now += 5
    ask(watchdog)
    assert watchdog.silence() == 120
    watchdog.restart()
    assert watchdog.silence() == 0
