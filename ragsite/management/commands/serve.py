"""From a fresh checkout to a running site, in the foreground."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import time
import warnings
from argparse import ArgumentParser
from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from ragsite.backup.restoring import interrupted_restore
from ragsite.demo import load_demo
from ragsite.postgres.cluster import EmbeddedPostgresError
from ragsite.postgres.embedded import EmbeddedPostgres
from ragsite.supervision.ballast import Ballast
from ragsite.supervision.forked import run_forked, share_memory
from ragsite.supervision.preloading import load_model, preload, program
from ragsite.supervision.processes import RestartsFile, Supervisor, parse_procfile
from ragsite.supervision.watchdog import ask_status, headers_of_a_proxy
from retrieval import conf
from retrieval.dense.embedders.onnx import OnnxEmbedder
from retrieval.exceptions import RetrievalError
from retrieval.management.prepared import migrate
from retrieval.search.profiles import active_profile

DATABASE_PAUSE_SECONDS = 5.0


class Command(BaseCommand):
    help = "Run the site: database, web server, worker and scheduler. The first run sets everything up."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))

    def handle(self, *args: Any, **options: Any) -> None:
        self.host, self.port = options["host"], options["port"]
        self._check_port()
        embedded = settings.EMBEDDED_POSTGRES
        if embedded is not None:
            self._say("Starting PostgreSQL …")
            embedded.acquire()
        if trouble := interrupted_restore():
            raise CommandError(trouble)
        # What preparing alone loads (models, the readers of files) is not kept as long as the site runs.
        credentials = run_forked(self._prepare, meanwhile=preload)
        load_model()
        # Whoever starts the site as root knows; the worker runs what the web server runs.
        warnings.filterwarnings("ignore", message="You're running the worker with superuser")

        environment = self._environment()
        procfile = Path(settings.BASE_DIR / "Procfile").read_text()
        processes = parse_procfile(procfile, environment)
        for process in processes:
            process.work = program(process.command, environment)
        supervisor = Supervisor(processes, environment, settings.BASE_DIR, self._say)
        self._restarts = RestartsFile(settings.DATA_DIR, processes)
        self._ready = False
        self._database_at = 0.0
        self._ballast = Ballast(settings.DATA_DIR, settings.DISK_RESERVE_BYTES, self._say)
        self._credentials = credentials
        self._say("Starting web server, worker and scheduler …")
        share_memory()
        supervisor.run(self._tick)
        self._say("Stopped.")

    def _prepare(self) -> tuple[str, str] | None:
        """Everything before the first process; the administrator's name and password when there was none."""
        self._say("Preparing the database …")
        call_command("check")
        migrate()
        self._prepare_model()
        credentials = self._first_admin()
        load_demo(settings.BASE_DIR / "demo", settings.DATA_DIR / "demo-loaded", self.stdout)
        return credentials

    def _tick(self) -> None:
        if settings.EMBEDDED_POSTGRES is not None:
            self._tend_database(settings.EMBEDDED_POSTGRES)
        self._restarts.keep_up()
        if not self._ready and self._ask_web_server("/readyz", 2.0) == HTTPStatus.OK:
            self._ready = True
            self._announce()

    def _tend_database(self, embedded: EmbeddedPostgres) -> None:
        self._ballast.keep_up()
        if time.monotonic() < self._database_at:
            return
        try:
            if not embedded.is_running():
                self._say("PostgreSQL is down; starting it again.")
                embedded.ensure_running()
            embedded.ensure_guarded()
        except (EmbeddedPostgresError, OSError) as error:
            # A full disk, say: when there is room again it starts, and the site with it.
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
        self._say("Stop with Ctrl-C.")

    def _ask_web_server(self, path: str, timeout_seconds: float) -> int | None:
        """The status of the web server's answer; None when it does not answer."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        address = everywhere.get(self.host, self.host)
        return ask_status(address, self.port, path, headers_of_a_proxy(), timeout_seconds)

    def _check_port(self) -> None:
        with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                raise CommandError(
                    f"Port {self.port} on {self.host} cannot be used ({error.strerror}). If another program has it, "
                    f"choose one with PORT, for example: PORT=8001 make run"
                ) from error

    def _prepare_model(self) -> None:
        embedder = conf.embedder()
        # What is converted already, this process need not open: the one that forks all others does.
        if not isinstance(embedder, OnnxEmbedder) or not embedder.is_converted():
            embedder.prepare(self._say)
        settings = active_profile().settings
        if settings.is_reranked:
            try:
                conf.reranker(settings.reranker).prepare(self._say)
            except (RetrievalError, ImproperlyConfigured) as error:
                self._say(f"The reranker {settings.reranker} cannot be used, the fused order will stand: {error}")

    def _first_admin(self) -> tuple[str, str] | None:
        users = get_user_model()
        if users.objects.filter(is_superuser=True).exists():
            return None
        password = secrets.token_urlsafe(9)
        users.objects.create_superuser("admin", password=password)
        return "admin", password

    def _environment(self) -> dict[str, str]:
        binaries = os.path.dirname(sys.executable)
        return {
            **os.environ,
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
            "HOST": self.host,
            "PORT": str(self.port),
            "DATA_DIR": str(settings.DATA_DIR),
            "DJANGO_SETTINGS_MODULE": "ragsite.settings",
            "PYTHONUNBUFFERED": "1",
        }

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
