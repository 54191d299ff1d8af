"""DeepEval in a process of its own, where it could phone home, read `.env` and write files, and does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.judge_server import judge_server

ROOT = Path(__file__).resolve().parents[3]
# It prints every name looked up and every address connected to, after all other exit handlers.
RECORDER = """
import atexit, json, os, socket, sys
seen = []
atexit.register(lambda: print(json.dumps({"seen": seen, "environment": dict(os.environ)}), flush=True))
def record(name):
    real = getattr(socket.socket, name)
    def connecting(self, address):
        seen.append(str(address[1] if isinstance(address, tuple) else address))
        return real(self, address)
    setattr(socket.socket, name, connecting)
record("connect"); record("connect_ex")
lookup = socket.getaddrinfo
def looking_up(host, *args, **kwargs):
    if host not in ("127.0.0.1", None):
        seen.append(str(host))
    return lookup(host, *args, **kwargs)
socket.getaddrinfo = looking_up
"""
JUDGING = """
from evaluation.judges.deepeval_judge import DeepEvalJudge
from evaluation.judges.judge_model import JudgeModel
from tests.unit.evaluation.test_judge_guards import CASE, UsageMeter
measured = DeepEvalJudge(JudgeModel(URL, "", "tiny-judge", 5.0), UsageMeter()).measure("faithfulness", CASE)
assert measured.score == 0.5
"""


def run(script, folder, **environment):
    cleared = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DEEPEVAL_", "CONFIDENT_", "OPENAI_", "DJANGO_"))
    }
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**cleared, "PYTHONPATH": str(ROOT), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def judged_in(folder, url, **environment):
    (folder / ".env").write_text("CONFIDENT_API_KEY=leaked\nA_SECRET_OF_ENV=leaked\nDEEPEVAL_TELEMETRY_OPT_OUT=0\n")
    done = run(f"{RECORDER}\nURL = {url!r}\n{JUDGING}", folder, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_only_the_judge_is_connected_to_and_nothing_read_or_written(tmp_path):
    environment = {"DEEPEVAL_TELEMETRY_OPT_OUT": "0", "DEEPEVAL_DISABLE_DOTENV": "0", "CONFIDENT_API_KEY": "k"}
    with judge_server() as server:
        told = judged_in(tmp_path, server.url, **environment, CI="true")
        port = server.url.rsplit(":", 1)[1].split("/")[0]
        assert set(told["seen"]) == {port}
    assert "A_SECRET_OF_ENV" not in told["environment"]
    assert "CONFIDENT_API_KEY" not in told["environment"]
    assert [path.name for path in tmp_path.rglob("*")] == [".env"]


def test_deepeval_that_was_imported_unmuted_is_refused(tmp_path):
    done = run("import deepeval\nimport evaluation.judges.deepeval_judge", tmp_path, DEEPEVAL_DISABLE_DOTENV="1")
    assert done.returncode != 0
    assert "before its telemetry was turned off" in done.stderr
