"""Memory runs out, or a worker's child grows. What a document may take while it is read: the tests of the sandbox."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from ragsite.supervision import memory
from ragsite.supervision.processes import Supervisor, parse_procfile
from tests.support.site import start_worker, wait_until

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes by such a score")


def score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


@pytest.mark.worker
@pytest.mark.django_db(transaction=True)
def test_a_workers_child_goes_before_the_database_and_is_replaced(tmp_path: Path) -> None:
    worker = start_worker(tmp_path / "worker.log")
    try:
        main = psutil.Process(worker.popen.pid)
        wait_until(main.children, 60, "the worker's child")
        (child,) = main.children()
        wait_until(lambda: score(child.pid) == memory.WORK_SCORE, 60, "the child's score")
        assert settings.EMBEDDED_POSTGRES is not None
        database = settings.EMBEDDED_POSTGRES._postmaster_pid()
        assert score(database) < memory.WORK_SCORE
        # What the kernel does where memory runs out.
        child.kill()
        wait_until(lambda: [one.pid for one in main.children()] not in ([], [child.pid]), 60, "another child")
        assert settings.EMBEDDED_POSTGRES.is_running()
    finally:
        worker.stop()


def test_what_serve_starts_goes_before_the_database(tmp_path: Path) -> None:
    (process,) = parse_procfile("sleeper: sleep 1000", {})
    supervisor = Supervisor([process], {"PATH": "/usr/bin:/bin"}, ROOT, print)
    seen: list[int] = []

    def tick() -> None:
        if process.child is not None:
            seen.append(score(process.child.pid))
            supervisor.stop()

    supervisor.run(tick)
    assert seen == [memory.SITE_SCORE]


def test_a_higher_score_stays() -> None:
    asked = (
        "from ragsite.supervision import memory; memory.go_before_others(900); memory.go_before_others(500); "
        "print(open('/proc/self/oom_score_adj').read())"
    )
    shown = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "900"
