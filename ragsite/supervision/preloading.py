"""What the processes of the site load, loaded once by the process that forks them: they start at once, and share it.

Nothing here starts a thread or leaves a connection to the database open, neither of which survives a fork.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.template.loader import get_template
from django.urls import get_resolver

from ragsite.observability import telemetry
from retrieval import conf, sandbox
from retrieval.dense.embedders.onnx import OnnxEmbedder
from retrieval.exceptions import RetrievalError

logger = logging.getLogger(__name__)

_MODULES = (
    "celery.app.amqp",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "ragsite.asgi",
    "ragsite.web",
    "ragsite.supervision.worker_pool",
    "django.contrib.humanize.templatetags.humanize",
    "django.contrib.messages.storage.fallback",
    "django.contrib.sessions.serializers",
    "kombu.transport.pgmq",
    "psycopg_pool",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.auto",
)


@functools.cache
def preload() -> None:
    """Load what any process of the site needs. The forks of a process that has done so find it done."""
    telemetry.wait_for_fork()
    for module in _MODULES:
        importlib.import_module(module)
    for backend in filter(None, (settings.QUERY_REFORMULATOR, *settings.RERANKERS.values())):
        importlib.import_module(backend["BACKEND"].rpartition(".")[0])
    sandbox.state()
    # Compiled, they stay so.
    for template in (settings.BASE_DIR / "templates" / "chat").glob("*.html"):
        get_template(f"chat/{template.name}")
    # All addresses, and with them the views and the administration.
    get_resolver()._populate()


@functools.cache
def load_model() -> None:
    """Open the embedder for forks to share, when the database is there: it says whose vectors are stored."""
    prepare_model(lambda embedder: embedder.open_for_forks())
    try:
        if notice := conf.embedder_notice():
            logger.warning("%s", notice)
    except (RetrievalError, ImproperlyConfigured):
        pass  # the log says so already
    # A connection does not survive a fork.
    connections.close_all()


def prepare_model(step: Callable[[OnnxEmbedder[Any]], None]) -> None:
    """Take ``step``, if the embedder runs in this process. What is wrong with it, /readyz says, and each answer."""
    try:
        embedder = conf.embedder()
        if isinstance(embedder, OnnxEmbedder):
            step(embedder)
    except (RetrievalError, ImproperlyConfigured, OSError) as error:
        logger.warning("The embedding model is not ready: %s", error)


def program(command: Sequence[str], environment: Mapping[str, str]) -> Callable[[], None] | None:
    """What ``python -m MODULE ARGUMENTS`` does, to be done in a fork of this process; None for another command."""
    if list(command[:2]) != ["python", "-m"]:
        return None
    return functools.partial(_run, list(command[2:]), dict(environment))


def _run(arguments: list[str], environment: dict[str, str]) -> None:
    os.environ.update(environment)
    sys.argv = arguments
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a text file
    module = importlib.import_module(arguments[0])
    if hasattr(module, "__path__"):
        module = importlib.import_module(f"{arguments[0]}.__main__")
    module.main()
