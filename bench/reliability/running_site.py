from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import psutil
from django.core.management.base import OutputWrapper

from bench import build_site_environment
from core.progress import ProgressBar
from evaluation import statistics
from ragsite.postgres.embedded import EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 300.0
STOP_SECONDS = 60.0
# A benchmark sends more requests than a person, so the limits are high.
_RATES = {"ASK_RATE": "1000000/min", "NUM_PROXIES": "1"}
_ROLES: dict[str, str | tuple[str, ...]] = {
    "web server": "ragsite-web",
    "web": "ragsite-web-",
    "worker": ("ragsite-documen", "ragsite-worker", "ragsite-judgeme"),
    "scheduler": "ragsite-beat",
}


class SiteFailed(Exception):
    """An error: the site does not work as needed. The person who runs the benchmark reads the message."""


class HttpReply(NamedTuple):
    status: int
    body: Any


class RunningSite:
    """A site that `manage.py serve` runs, with all its processes.

    The benchmark connects to the site's database. Only `manage.py serve` starts the database.
    """

    def __init__(self, data_dir: Path, port: int, **environment: str) -> None:
        self.data_dir = data_dir
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = data_dir.parent / f"{data_dir.name}.log"
        self.postgres = EmbeddedPostgres(data_dir)
        self.environment = {
            **os.environ,
            **_RATES,
            **build_site_environment(CALLER_SHARE=1.0),
            "RAGSITE_DOTENV": "false",
            "DATA_DIR": str(data_dir),
            "PYTHONUNBUFFERED": "1",
            **environment,
        }
        self.serve: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the site, and wait until it answers questions. Raises: SiteFailed."""
        self.launch()
        if self.wait(self.is_ready, START_SECONDS) is None:
            raise SiteFailed(f"The site was not ready after {START_SECONDS:g} s: see {self.log}.")

    def launch(self) -> None:
        command = [sys.executable, "manage.py", "serve", "--port", str(self.port)]
        with self.log.open("ab") as log:
            self.serve = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self) -> None:
        if self.serve is not None and self.serve.poll() is None:
            self.serve.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.serve.wait(STOP_SECONDS)
        self.kill_everything()

    def kill_everything(self) -> None:
        """Kill the site's processes that are left, by their ids. After an orderly stop there are none."""
        roles = ("serve", "web server", "worker", "scheduler", "postgres")
        left = [process for role in roles for process in self.find_processes(role)]
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=10)

    def find_processes(self, role: str) -> list[psutil.Process]:
        """Return the processes of a role: serve, web server, web, worker, worker child, scheduler, postgres."""
        if role == "serve":
            return [psutil.Process(self.serve.pid)] if self.serve is not None and self.serve.poll() is None else []
        if role == "postgres":
            return self._find_postmasters()
        if role == "worker child":
            return [child for worker in self.find_processes("worker") for child in _list_children(worker)]
        found = {
            process.pid: process
            for process in psutil.process_iter(["name", "ppid", "environ"])
            if process.info["name"].startswith(_ROLES[role])
            and (process.info["environ"] or {}).get("DATA_DIR") == str(self.data_dir)
        }
        # A fork has the same name as its parent, so only the topmost process counts.
        return [process for process in found.values() if process.info["ppid"] not in found]

    def _find_postmasters(self) -> list[psutil.Process]:
        try:
            pid = int((self.postgres.cluster / "postmaster.pid").read_text().split("\n", 1)[0])
            process = psutil.Process(pid)
            is_it = str(self.postgres.cluster) in " ".join(process.cmdline())
        except (OSError, ValueError, psutil.Error):
            return []
        return [process] if is_it else []

    def is_ready(self) -> bool:
        return self.get("/readyz").status == 200

    def is_alive(self) -> bool:
        return self.get("/healthz").status == 200

    def get(self, path: str, seconds: float = 10.0, **headers: str) -> HttpReply:
        return self._send("GET", path, seconds, headers=headers)

    def post(self, path: str, body: Mapping[str, Any], seconds: float = 120.0, **headers: str) -> HttpReply:
        return self._send("POST", path, seconds, json=dict(body), headers=headers)

    def upload(self, collection: str, name: str, data: bytes, key: str, seconds: float = 60.0) -> HttpReply:
        return self._send(
            "POST",
            "/api/v1/documents/",
            seconds,
            data={"collection": collection},
            files={"file": (name, data)},
            headers={"Authorization": f"Token {key}"},
        )

    def _send(self, method: str, path: str, seconds: float, **options: Any) -> HttpReply:
        try:
            response = httpx2.request(method, self.url + path, timeout=seconds, **options)
            is_json = response.headers.get("Content-Type", "").startswith("application/json")
            body = response.json() if is_json else None
        except (httpx2.HTTPError, json.JSONDecodeError):
            return HttpReply(0, None)
        return HttpReply(response.status_code, body)

    def start_manage_command(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def administrators_key(self) -> str:
        return (
            self.start_manage_command("create_key", "admin", "--scope", "admin").communicate(timeout=120)[0].split()[-1]
        )

    def wait(self, condition: Callable[[], object], seconds: float) -> float | None:
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > seconds:
                return None
            time.sleep(0.2)
        return time.monotonic() - started


@contextmanager
def running_site(port: int, **environment: str) -> Iterator[RunningSite]:
    """Run a site on a temporary data directory, with Django's models connected to its database."""
    folder = Path(tempfile.mkdtemp(prefix="ragsite-bench-"))
    # PostgreSQL's account must be able to enter the folder.
    folder.chmod(0o711)
    site = RunningSite(folder / "var", port, **environment)
    try:
        site.start()
        _connect(site)
        yield site
    finally:
        site.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _connect(site: RunningSite) -> None:
    # With the address of a database, this process does not start a server itself.
    os.environ |= {"DATABASE_URL": site.postgres.url, "DATA_DIR": str(site.data_dir), "RAGSITE_DOTENV": "false"}
    import django

    django.setup()


def _list_children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children())
    except psutil.Error:
        return []


BAR = ProgressBar(OutputWrapper(sys.stderr))


def generate_distinct_questions(mark: str = "") -> Iterator[str]:
    """Yield endlessly many questions that the demo documents answer. All differ, so no answer is reused."""
    texts = [each["question"] for each in json.loads((ROOT / "demo" / "questions.json").read_text())["questions"]]
    for number in count():
        yield f"{texts[number % len(texts)][:400]} ({mark}{number})"


def percentile(values: Sequence[float], percent: float) -> float | None:
    return statistics.percentile(values, percent) if values else None


def format_seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
