from __future__ import annotations

import time

from django.core.management.base import OutputWrapper

WIDTH = 24
SHORTEST_ESTIMATED_SECONDS = 15.0


class ProgressBar:
    def __init__(self, output: OutputWrapper | None) -> None:
        self._output = output
        self._is_terminal = output is not None and output.isatty()
        self._last = 0.0
        self._width = 0
        self._task = ""
        self._began = (0.0, 0)

    def show(self, what: str, done: int, total: int, task: str = "") -> None:
        now = time.monotonic()
        if (task or what) != self._task:
            self._task, self._began = task or what, (now, done)
        if self._output is None or not total or now - self._last < (0.1 if self._is_terminal else 10.0):
            return
        self._last = now
        filled = WIDTH * done // total
        line = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {what} {done} of {total}{self._format_eta(now, done, total)}"
        if self._is_terminal:
            self._output.write(f"\r{line:<{self._width}}", ending="")
            self._width = len(line)
        else:
            self._output.write(line)
        self._output.flush()

    def _format_eta(self, now: float, done: int, total: int) -> str:
        began, first = self._began
        if done <= first or now - began < SHORTEST_ESTIMATED_SECONDS:
            return ""
        minutes = round((now - began) / (done - first) * (total - done) / 60)
        if not minutes:
            return ", less than a minute left"
        return f", about {minutes} min left" if minutes < 120 else f", about {minutes // 60} h left"

    def clear(self) -> None:
        if self._output is not None and self._width:
            self._output.write("\r" + " " * self._width + "\r", ending="")
            self._width = 0
