"""A progress bar for the terminal."""

from __future__ import annotations

import time

from django.core.management.base import OutputWrapper

WIDTH = 24


class ProgressBar:
    """What is being done and how far it is, on one line of a terminal; elsewhere a line now and then."""

    def __init__(self, output: OutputWrapper | None) -> None:
        """Without an ``output`` nothing is shown."""
        self._output = output
        self._is_terminal = output is not None and output.isatty()
        self._last = 0.0
        self._width = 0

    def show(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if self._output is None or not total or now - self._last < (0.1 if self._is_terminal else 10.0):
            return
        self._last = now
        filled = WIDTH * done // total
        line = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {what} {done} of {total}"
        if self._is_terminal:
            self._output.write(f"\r{line:<{self._width}}", ending="")
            self._width = len(line)
        else:
            self._output.write(line)
        self._output.flush()

    def clear(self) -> None:
        if self._output is not None and self._width:
            self._output.write("\r" + " " * self._width + "\r", ending="")
            self._width = 0
