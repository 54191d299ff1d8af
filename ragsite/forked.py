"""Work in a process of its own, whose memory is gone when it is done."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

from django.core.management.base import CommandError
from django.db import connections

T = TypeVar("T")


def run_forked(work: Callable[[], T]) -> T:
    """What ``work`` returns, computed in a child of this process; what is pickled fits through.

    To be called before this process starts threads. Raises: CommandError as the child raised it, or when the child
    ended otherwise; then its traceback is on standard error.
    """
    # Two processes that share a connection would read each other's answers.
    connections.close_all()
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(work, sending), name="preparation")
    child.start()
    sending.close()
    try:
        error, result = receiving.recv()
    except EOFError:
        raise CommandError("The preparation ended before it was done.") from None
    finally:
        receiving.close()
        child.join()
    if error is not None:
        raise CommandError(error)
    done: T = result
    return done


def _run(work: Callable[[], object], sending: Connection) -> None:
    try:
        result = work()
    except CommandError as error:
        sending.send((str(error), None))
    else:
        connections.close_all()
        sending.send((None, result))
