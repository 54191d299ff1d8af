"""Memory runs out. A worker's child that goes: `test_killed.py`; what a document may take: the tests of the sandbox."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragsite import machine
from tests.integration.test_processes import start
from tests.support.site import wait_until

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes by such a score")


def score(pid: int) -> int:
    """How soon Linux ends the process where memory runs out."""
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def test_what_serve_starts_goes_before_the_database(tmp_path: Path) -> None:
    parent, [child] = start(tmp_path)
    try:
        wait_until(lambda: score(child) == machine.SITE_SCORE, what="the score")
    finally:
        parent.terminate()
        parent.wait(60)


def test_a_higher_score_stays() -> None:
    asked = (
        "from ragsite import machine; machine.go_before_others(900); machine.go_before_others(500); "
        "print(open('/proc/self/oom_score_adj').read())"
    )
    shown = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "900"
