"""Real processes of the site on the test database: a web server and a worker that can be killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
from django.db import connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ragsite.celery import app
from ragsite.processes.machine import is_answering
from tests.support.databases import url_of

ROOT = Path(__file__).resolve().parents[2]


def wait_until(condition, seconds=60.0, what="it"):
    """Wait until ``condition`` is true. Raises: AssertionError when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"Waited {seconds:g} s for {what}."
        time.sleep(0.05)


def database_url():
    """Return the test database, in a form that another process can connect with."""
    return url_of(connection.settings_dict["NAME"])


class SiteProcess:
    """A process of the site; ``log`` is what it wrote."""

    def __init__(self, command, log, **environment):
        self.log = log
        self._file = log.open("ab")
        self.popen = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "ragsite.settings",
                "DATABASE_URL": database_url(),
                "PYTHONUNBUFFERED": "1",
                # A suite asks more in a minute than a person does.
                "ASK_RATE": "10000/min",
                **environment,
            },
        )

    def kill(self):
        """End it, and all it has started, without a chance to clean up."""
        started = psutil.Process(self.popen.pid).children(recursive=True)
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(10)
        # Processes with groups of their own end with it, a moment later.
        psutil.wait_procs(started, 10)

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self._file.close()


def start_worker(log, concurrency=1, **environment):
    """Start a Celery worker with one child or more, as the Procfile does."""
    options = ["--loglevel", "INFO", "--concurrency", str(concurrency), "--without-gossip", "--without-mingle"]
    worker = SiteProcess(["celery", "--app", "ragsite", "worker", *options], log, **environment)
    wait_until(lambda: b" ready." in log.read_bytes(), 60, "the worker")
    return worker


class Workers:
    """A worker that the tests of a module share. One that was killed is followed by another when it is asked for."""

    def __init__(self, folder, **environment):
        self._folder = folder
        self._environment = environment
        self._started = []

    def running(self):
        if not self._started or self._started[-1].popen.poll() is not None:
            log = self._folder / f"worker{len(self._started)}.log"
            self._started.append(start_worker(log, **self._environment))
        return self._started[-1]

    def log(self):
        """Return the end of the last process's log."""
        return self._started[-1].log.read_text()[-3000:]

    def stop(self):
        for worker in self._started:
            worker.stop()


def empty_queues():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pgmq.purge_queue(queue_name) FROM pgmq.list_queues()")


@contextmanager
def real_queue():
    """Yield the queue that a worker reads, in the test database, empty."""
    previous = app.conf.broker_transport_options
    app.conf.broker_transport_options = {**previous, "conn_string": make_conninfo(**conninfo_to_dict(database_url()))}
    app._pool = app.amqp._producer_pool = None
    empty_queues()
    yield
    empty_queues()
    app.conf.broker_transport_options = previous
    app._pool = app.amqp._producer_pool = None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class WebServer(SiteProcess):
    """The web server as the Procfile starts it, with one process. Two can share the database."""

    def __init__(self, log, config="python:ragsite.processes.web", **environment):
        self.port = free_port()
        command = ["gunicorn", "--config", config, "--bind", f"127.0.0.1:{self.port}"]
        super().__init__(command, log, **{"WEB_CONCURRENCY": "1", **environment})
        wait_until(self.answers, 60, f"the web server\n{log.read_text()}")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def answers(self):
        return is_answering("127.0.0.1", self.port, "/healthz")
