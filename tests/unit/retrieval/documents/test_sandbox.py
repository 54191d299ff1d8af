"""The sandbox itself: what comes back, what is refused, and what happens when anything dies."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from retrieval.documents import sandbox
from retrieval.documents.extraction.sandboxed import build_sandbox_limits
from retrieval.documents.sandbox import JobLimits
from retrieval.text.extracted import ExtractionLimits
from tests.support.site import wait_until

ROOT = Path(__file__).resolve().parents[4]
JOBS = "tests.support.sandboxed_jobs"
LIMITS = JobLimits(memory_mib=64, seconds=20, output_bytes=10**6)
SHORT = JobLimits(memory_mib=64, seconds=1, output_bytes=10**6)


def run(name, limits=LIMITS, source=b"", **arguments):
    return sandbox.run(f"{JOBS}:{name}", source, arguments, limits)[0]


def test_a_job_gives_a_value_and_bytes(tmp_path):
    assert sandbox.run(f"{JOBS}:count", b"one two one", {"word": "one"}, LIMITS) == ({"found": 2}, b"one two on")
    (tmp_path / "file").write_bytes(b"two")
    assert sandbox.run(f"{JOBS}:count", tmp_path / "file", {"word": "one"}, LIMITS) == ({"found": 0}, b"two")
    with pytest.raises(FileNotFoundError):
        run("count", source=tmp_path / "gone", word="x")


def test_an_error_of_the_job_comes_back_by_name():
    with pytest.raises(sandbox.JobFailed, match="no such thing") as caught:
        run("fail")
    assert caught.value.kind == "ValueError"


def test_a_job_sees_nothing_of_this_process(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    environment, folder, descriptors = run("environment")
    assert "secret" not in str(environment)
    assert set(environment) <= {"PATH", "LANG", "LC_CTYPE"}
    assert folder == "/"
    assert descriptors == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "limits", "sentence"),
    [
        ("allocate", LIMITS, "needed more than 64 MiB of memory"),
        ("fill_memory", LIMITS, "needed more than 64 MiB of memory"),
        ("spin", SHORT, "took longer than 1 s"),
        ("sleep", SHORT, "took longer than 1 s"),
        ("write_endlessly", LIMITS, "gave more than 1 MB of text"),
    ],
)
def test_a_limit_ends_the_job_and_is_named(name, limits, sentence):
    with pytest.raises(sandbox.LimitExceeded, match=f"^{sentence}$"):
        run(name, limits)


@pytest.mark.parametrize("name", ["crash", "write_nonsense"])
def test_a_crash_is_told_and_the_next_job_runs(name):
    with pytest.raises(sandbox.JobCrashed):
        run(name)
    assert run("count", word="x") == {"found": 0}


@pytest.mark.skipif(bool(sandbox.read_sandbox_state().missing_guards), reason="this machine does not offer all guards")
def test_a_job_can_leave_in_no_way(tmp_path):
    (tmp_path / "file").write_text("x")
    outcomes = run("attempts", path=str(tmp_path / "file"))
    assert set(outcomes.values()) == {"PermissionError"}, outcomes
    assert os.listdir(tmp_path) == ["file"]


def test_a_job_can_wake_itself():
    assert run("wake_itself") == "x"


def test_a_job_nobody_wants_is_killed():
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(sandbox.JobCancelled):
        sandbox.run(f"{JOBS}:spin", b"", {}, LIMITS, still_wanted=lambda elapsed: elapsed < 0.3)
    deadline = time.monotonic() + 10
    while {child.pid for child in psutil.Process().children(recursive=True)} - before and time.monotonic() < deadline:
        time.sleep(0.05)
    started = [c for c in psutil.Process().children(recursive=True) if c.pid not in before]
    # The template itself, if this was the first job.
    assert all("retrieval.documents.sandbox.template" in " ".join(child.cmdline()) for child in started)
    assert len(started) <= 1


def test_a_killed_template_is_started_anew():
    run("count", word="x")
    # A child of an earlier test may have ended without anybody having waited for it: as_dict() says None of it.
    lines = {child: child.as_dict(["cmdline"])["cmdline"] or [] for child in psutil.Process().children()}
    (template,) = [child for child, line in lines.items() if "retrieval.documents.sandbox.template" in " ".join(line)]
    killer = threading.Timer(0.5, template.kill)
    killer.start()
    # The job that ran in it is run again, once.
    with pytest.raises(sandbox.LimitExceeded, match="took longer than 2 s"):
        run("sleep", JobLimits(64, 2, 1000))
    killer.join()
    assert not template.is_running()
    assert run("count", word="x") == {"found": 0}


SCRIPT = """
import os, sys, threading
sys.path.insert(0, os.getcwd())
from retrieval.documents import sandbox
def work():
    try:
        sandbox.run("tests.support.sandboxed_jobs:sleep", b"", {}, sandbox.JobLimits(64, 100, 1000))
    except sandbox.SandboxError as error:
        print(error)
sandbox.run("tests.support.sandboxed_jobs:count", b"", {"word": "x"}, sandbox.JobLimits(64, 10, 1000))
threading.Thread(target=work, daemon=True).start()
if os.fork() == 0:
    # A fork has a sandbox of its own and does not keep the other one alive.
    sandbox.run("tests.support.sandboxed_jobs:count", b"", {"word": "x"}, sandbox.JobLimits(64, 10, 1000))
print("ready", flush=True)
threading.Event().wait(100)
"""


def test_everything_ends_with_a_parent_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert [parent.stdout.readline(), parent.stdout.readline()] == ["ready\n"] * 2
    own = psutil.Process(parent.pid)
    (fork,) = [
        c
        for c in own.children()
        if "sandbox.template" not in " ".join(c.cmdline())[:3000] or "fork" in str(c.cmdline())
    ]

    def ours():
        return [c for c in own.children(recursive=True) if c != fork and fork not in c.parents()]

    # The template, and the job that it starts a moment later.
    wait_until(lambda: len(ours()) == 2)
    killed = ours()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    gone, alive = psutil.wait_procs(killed, timeout=10)
    assert not alive
    theirs = fork.children(recursive=True)
    fork.kill()
    assert not psutil.wait_procs(theirs, timeout=10)[1]


def test_processor_time_may_be_less_than_wall_time():
    limits = replace(SHORT, seconds=30.0, processor_seconds=1.0)
    with pytest.raises(sandbox.LimitExceeded, match=r"needed more than 1 s of processor time"):
        run("spin", limits)


@pytest.mark.parametrize(("size_bytes", "seconds"), [(3_000, 10), (2**20, 20), (40 * 2**20, 60)])
def test_a_small_file_may_take_less_processor_time(size_bytes, seconds):
    limits = build_sandbox_limits(1024, 60.0, ExtractionLimits(), size_bytes)
    assert (limits.seconds, limits.processor_seconds) == (60.0, seconds)


# The kernel limits the number of Landlock layers: the job's own fails, although the machine offers Landlock.
WITHOUT_LANDLOCK = """
import ctypes, json, os, struct, sys
sys.path.insert(0, os.getcwd())
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
rules = libc.syscall(444, struct.pack("=Q", 1 << 9), ctypes.c_size_t(8), 0)
while libc.syscall(446, rules, 0) == 0:
    pass
from retrieval.documents import sandbox
missing = sandbox.read_sandbox_state().missing_guards
def attempts():
    arguments = {"path": sys.argv[1]}
    return sandbox.run("tests.support.sandboxed_jobs:attempts", b"", arguments, sandbox.JobLimits(64, 10, 1000))[0]
found = attempts()
sandbox.set_guards_required(True)
try:
    refused = str(attempts())
except sandbox.SandboxUnavailable as error:
    refused = str(error)
print(json.dumps([missing, found, refused]))
"""


@pytest.mark.skipif(bool(sandbox.read_sandbox_state().missing_guards), reason="this machine does not offer all guards")
def test_a_guard_that_fails_is_named_and_no_file_is_read_where_all_are_required(tmp_path):
    (tmp_path / "secret_key").write_text("x")
    command = [sys.executable, "-c", WITHOUT_LANDLOCK, str(tmp_path / "secret_key")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    missing, found, refused = json.loads(done.stdout)
    assert missing == ["files"]
    assert "DEGRADED: the sandbox lacks these guards on this machine: files." in done.stderr
    assert (found["read"], found["connect"]) == ("done", "PermissionError")
    assert refused == "No file is read without all guards of the sandbox; missing here: files."


def test_a_job_that_lacks_a_guard_is_named(monkeypatch):
    run("count", word="x")
    monkeypatch.setattr(sandbox.read_sandbox_state(), "missing_guards", ())
    sandbox._record_missing_guards(["memory", "capabilities", "files"])
    assert sandbox.read_sandbox_state().missing_guards == ("system calls",)
