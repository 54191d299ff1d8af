"""Run an Airbyte connector as a process with limits, and read the untrusted JSON lines that it prints."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from django.utils.translation import gettext as _t

from core import deadline
from retrieval.sources.protocol import SourceUnavailable, SourceUnreadable

# A script that sets the limits of its process, and then becomes the connector.
_START = """
import ctypes, os, resource, signal, sys
parent, memory, seconds, file_bytes, *command = sys.argv[1:]
for name, value in (("DATA", memory), ("CPU", seconds), ("FSIZE", file_bytes), ("CORE", 0)):
    kind = getattr(resource, "RLIMIT_" + name)
    hard = resource.getrlimit(kind)[1]
    value = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
    resource.setrlimit(kind, (value, value))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit(1)
os.execv(command[0], command)
"""
# Other environment variables are not passed on, because some contain the site's keys.
_PASSED_ON = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "TZ")
_PIECE_BYTES = 1 << 16
_ERROR_BYTES = 1 << 14
_TICK_SECONDS = 0.5
_END_SECONDS = 10.0
# A younger folder is kept, because the process that created it may not have locked it yet.
_NEW_SECONDS = 60.0
MOST_NOTES = 50
_LONGEST_NOTE = 500
_SHORTEST_SECRET = 4
_TRACEBACK = "Traceback (most recent call last)"


class TookTooLong(SourceUnavailable):
    """An error: the connector was killed because its time was over."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    seconds: float = 8 * 60.0
    memory_bytes: int = 2 << 30
    file_bytes: int = 1 << 30
    line_bytes: int = 16 << 20
    total_bytes: int = 4 << 30


def build_connector_environment(folder: str) -> dict[str, str]:
    passed_on = {name: os.environ[name] for each in _PASSED_ON for name in (each, each.lower()) if name in os.environ}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder, **passed_on}


class ConnectorProcess:
    """A running connector. Use it in a `with` statement, in one thread.

    ``files`` maps command-line options to the texts of their files. ``notes`` are lines for the log. ``secrets`` are
    removed from notes and errors.
    """

    def __init__(
        self,
        command: Sequence[str],
        files: Mapping[str, str],
        *,
        scratch: Path,
        secrets: Collection[str] = (),
        limits: ProcessLimits | None = None,
    ) -> None:
        self._command, self._files, self._scratch = command, files, scratch
        hidden = {part for secret in secrets for part in (secret, json.dumps(secret)[1:-1])}
        self._secrets = sorted((each for each in hidden if len(each) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._limits = limits or ProcessLimits()
        self._warnings: list[str] = []
        self._remarks: list[str] = []
        self._errors = bytearray()
        self._failure: SourceUnreadable | SourceUnavailable | None = None
        self._is_incomplete = False

    def __enter__(self) -> Self:
        self._ends_at = time.monotonic() + deadline.seconds_left(self._limits.seconds)
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_orphaned_folders(self._scratch)
        self._folder = tempfile.mkdtemp(dir=self._scratch)
        self._lock = os.open(self._folder, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        with contextlib.ExitStack() as opened:
            arguments: list[str] = []
            descriptors: list[int] = []
            for argument, text in self._files.items():
                file = opened.enter_context(_open_unnamed_file(text))
                descriptors.append(file)
                arguments += [argument, f"/dev/fd/{file}"]
            limits = self._limits
            sizes = (os.getpid(), limits.memory_bytes, int(limits.seconds) + 1, limits.file_bytes)
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-c", _START, *map(str, sizes), *self._command, *arguments],
                    env=build_connector_environment(self._folder),
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    pass_fds=descriptors,
                    start_new_session=True,
                )
            except OSError as error:
                self._remove_folder()
                raise SourceUnavailable(_t("The connector could not be started: %s.") % error.strerror) from error
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._remove_folder()

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)

    @property
    def notes(self) -> list[str]:
        return [*self._warnings, *self._remarks]

    def iterate_messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages that the connector prints, except logs and error reports.

        Raises: SourceUnreadable for an error in the settings, or output that breaks the protocol; SourceUnavailable for
        any other error.
        """
        for line in self._lines():
            message = self._parse(line)
            match message.get("type"):
                case "LOG":
                    told = _read_dict(message, "log")
                    self._add_note(str(told.get("level")), str(told.get("message")))
                case "TRACE":
                    self._handle_trace_message(_read_dict(message, "trace"))
                case None:
                    continue
                case _:
                    yield message
        self._wait_for_success()

    def _lines(self) -> Iterator[bytes]:
        out, err = self._process.stdout, self._process.stderr
        assert out is not None
        assert err is not None
        line, total = bytearray(), 0
        with selectors.DefaultSelector() as waiting:
            waiting.register(out, selectors.EVENT_READ)
            waiting.register(err, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(max(0.0, min(_TICK_SECONDS, self._ends_at - time.monotonic())))
                if time.monotonic() >= self._ends_at:
                    raise TookTooLong(_t("The connector took longer than %d seconds.") % self._limits.seconds)
                if not ready and self._process.poll() is not None:
                    # The connector has ended, but its child process may still have the output open.
                    break
                for key, _events in ready:
                    piece = os.read(key.fd, _PIECE_BYTES)
                    if not piece:
                        waiting.unregister(key.fileobj)
                    elif key.fileobj is err:
                        self._errors = (self._errors + piece)[-_ERROR_BYTES:]
                    else:
                        total += len(piece)
                        if total > self._limits.total_bytes:
                            raise SourceUnreadable(
                                _t("The connector sends more than %d MiB.") % (self._limits.total_bytes >> 20)
                            )
                        first, *others = piece.split(b"\n")
                        line += first
                        for other in others:
                            self._check_length(line)
                            yield bytes(line)
                            line = bytearray(other)
                        self._check_length(line)
        if line:
            yield bytes(line)

    def _check_length(self, line: bytearray) -> None:
        if len(line) > self._limits.line_bytes:
            raise SourceUnreadable(
                _t("A record of the connector is larger than %d KiB.") % (self._limits.line_bytes >> 10)
            )

    def _parse(self, line: bytes) -> dict[str, Any]:
        if not line.strip():
            return {}
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and isinstance(message.get("type"), str):
            return message
        if b'"RECORD"' in line:
            # The document of a skipped record would be deleted.
            raise SourceUnreadable(
                _t("The connector sent a record that cannot be read: %s") % self._clean_text(line, 100)
            )
        self._add_note("INFO", self._clean_text(line))
        return {}

    def _handle_trace_message(self, trace: dict[str, Any]) -> None:
        status = _read_dict(trace, "stream_status").get("status")
        self._is_incomplete |= status == "INCOMPLETE"
        if trace.get("type") != "ERROR":
            return
        error = _read_dict(trace, "error")
        said = self._clean_text(error.get("message") or error.get("internal_message") or "") or _t("It gave no reason.")
        self._add_note("ERROR", said)
        kind = SourceUnreadable if error.get("failure_type") == "config_error" else SourceUnavailable
        # The first error is the cause. Airbyte's development kit adds a summary, which always blames the settings.
        if self._failure is None:
            self._failure = kind(_t("The connector says: %s") % said)

    def _add_note(self, level: str, text: str) -> None:
        if level in ("DEBUG", "TRACE"):
            return
        notes = self._remarks if level == "INFO" else self._warnings
        if len(notes) < MOST_NOTES and (said := self._clean_text(text)):
            notes.append(f"{level[:10]}: {said}")

    def _clean_text(self, text: str | bytes, longest: int = _LONGEST_NOTE) -> str:
        said = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        if _TRACEBACK in said:
            # In a traceback, lines without indentation name the errors.
            kept = (line for line in said.splitlines() if line[:1].strip() and not line.startswith(_TRACEBACK))
            said = "\n".join(kept)
        for secret in self._secrets:
            said = said.replace(secret, "•••")
        return " ".join("".join(each if each.isprintable() else " " for each in said).split())[:longest]

    def clean(self, text: str) -> str:
        return self._clean_text(text)

    def _wait_for_success(self) -> None:
        try:
            status = self._process.wait(max(0.0, min(_END_SECONDS, self._ends_at - time.monotonic())))
        except subprocess.TimeoutExpired as error:
            raise SourceUnavailable(_t("The connector does not end.")) from error
        if self._failure is not None:
            raise self._failure
        if status:
            last = self._clean_text(bytes(self._errors).strip().rpartition(b"\n")[2])
            told = {"status": status, "error": last or _t("It gave no reason.")}
            raise SourceUnavailable(_t("The connector ended with the status %(status)d: %(error)s") % told)
        if self._is_incomplete:
            raise SourceUnavailable(_t("The connector could not read everything."))


def _read_dict(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = message.get(name)
    return value if isinstance(value, dict) else {}


@contextlib.contextmanager
def _open_unnamed_file(text: str) -> Iterator[int]:
    is_linux = hasattr(os, "memfd_create")
    with os.fdopen(os.memfd_create("file"), "w+b", 0) if is_linux else tempfile.TemporaryFile(buffering=0) as file:
        file.write(text.encode("utf-8", "replace"))
        file.seek(0)
        yield file.fileno()


def _remove_orphaned_folders(scratch: Path) -> None:
    for folder in scratch.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime < _NEW_SECONDS:
                continue
            lock = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
