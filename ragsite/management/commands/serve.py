from __future__ import annotations

import gc
import os
import signal
import time
import warnings
from argparse import ArgumentParser
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ragsite.operations.backups import describe_interrupted_restore
from ragsite.postgres.embedded import EmbeddedPostgres, EmbeddedPostgresError
from ragsite.processes import local_model, machine
from ragsite.processes.first_run import prepare_site
from ragsite.processes.supervision import parse_procfile, supervise
from ragsite.processes.web import load_model, preload_modules

DATABASE_PAUSE_SECONDS = 5.0


class Command(BaseCommand):
    help = "Run the site: database, web server, worker and scheduler. The first run sets everything up."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))

    def handle(self, *args: Any, **options: Any) -> None:
        self.host, self.port = options["host"], options["port"]
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
        self._lock = machine.lock_file(settings.DATA_DIR / ".serve-lock")
        if self._lock is None:
            raise CommandError(
                f"A site runs on {settings.DATA_DIR}: stop it first, or set another DATA_DIR for this one."
            )
        if trouble := machine.find_port_problem(self.host, self.port):
            raise CommandError(
                f"Port {self.port} on {self.host} cannot be used ({trouble}). If another program has it, "
                f"choose one with PORT, for example: PORT=8001 make run"
            )
        if settings.LOCAL_MODEL and (trouble := local_model.find_problem()):
            raise CommandError(trouble)
        embedded = settings.EMBEDDED_POSTGRES
        if embedded is not None:
            self._say("Starting PostgreSQL …")
            embedded.acquire_server()
        if trouble := describe_interrupted_restore():
            raise CommandError(trouble)
        # A child process prepares the site, so that modules used only for this take no memory later.
        fork, ignored = get_context("fork"), (signal.SIGINT, signal.SIG_IGN)
        with ProcessPoolExecutor(1, mp_context=fork, initializer=signal.signal, initargs=ignored) as child:
            preparation = child.submit(prepare_site)
            try:
                preload_modules()
                self._credentials = preparation.result()
            except KeyboardInterrupt:
                for process in active_children():
                    process.kill()
                raise
        load_model()
        warnings.filterwarnings("ignore", message="You're running the worker with superuser")

        environment = {
            **os.environ,
            "HOST": f"[{self.host}]" if ":" in self.host else self.host,
            "PORT": str(self.port),
            "DATA_DIR": str(settings.DATA_DIR),
            "PYTHONUNBUFFERED": "1",
        }
        processes = parse_procfile((settings.BASE_DIR / "Procfile").read_text(), environment)
        unset = {"model": not settings.LOCAL_MODEL, "slack": not settings.SLACK_BOT_TOKEN}
        processes = [process for process in processes if not unset.get(process.name)]
        self._model_until = time.monotonic() + local_model.LOADING_SECONDS
        self._is_ready = False
        self._database_at = 0.0
        self._say("Starting web server, worker and scheduler …")
        # The garbage collector writes to all objects except frozen ones. These writes would end the sharing of memory
        # with forks, so all objects are frozen.
        gc.collect()
        gc.freeze()
        supervise(processes, environment, settings.DATA_DIR, self._say, self._tick)
        self._say("Stopped.")

    def _tick(self) -> None:
        if settings.EMBEDDED_POSTGRES is not None:
            self._keep_database_running(settings.EMBEDDED_POSTGRES)
        if not self._is_ready and self._is_answering() and self._has_model():
            self._is_ready = True
            self._announce()

    def _has_model(self) -> bool:
        if not settings.LOCAL_MODEL or local_model.is_ready():
            return True
        if time.monotonic() < self._model_until:
            return False
        self._say("The local language model has not started; until it does, answers are quoted from the documents.")
        return True

    def _keep_database_running(self, embedded: EmbeddedPostgres) -> None:
        machine.reserve_disk_space(settings.DATA_DIR, settings.DISK_RESERVE_BYTES, self._say)
        if time.monotonic() < self._database_at:
            return
        try:
            if not embedded.is_running():
                self._say("PostgreSQL is down; starting it again.")
                embedded.ensure_running()
            embedded.ensure_guardian_running()
        except (EmbeddedPostgresError, OSError) as error:
            self._say(f"{error}\nTrying again in {DATABASE_PAUSE_SECONDS} s.")
            self._database_at = time.monotonic() + DATABASE_PAUSE_SECONDS

    def _announce(self) -> None:
        address = f"http://{self.host}:{self.port}/"
        self._say("")
        self._say(f"Ready: {address}")
        if self._credentials:
            name, password = self._credentials
            self._say(f"Administration: {address}admin/ — sign in as {name} with the password {password}")
            self._say("(This password is shown once. `.venv/bin/python manage.py changepassword admin` sets another.)")
        else:
            self._say(f"Administration: {address}admin/ — sign in as you did before.")
        told = settings.DATA_DIR / "search-quality-told"
        if not settings.EMBEDDER and not told.exists():
            self._say(f"Better answers with a larger embedder: {address}admin/evaluation/embeddertrial/")
            told.touch()
        self._say("Stop with Ctrl-C.")

    def _is_answering(self) -> bool:
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        names = [name.lstrip(".") for name in settings.ALLOWED_HOSTS if name != "*"]
        headers = {"Host": names[0] if names else "localhost", "X-Forwarded-Proto": "https"}
        return machine.is_answering(everywhere.get(self.host, self.host), self.port, "/readyz", headers)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
