"""What can go wrong with a job in the sandbox."""

from __future__ import annotations


class SandboxError(Exception):
    """Base of everything that :func:`retrieval.documents.sandbox.run` raises on purpose."""


class LimitExceeded(SandboxError):
    """The job needed more than its limits allow. ``str(error)`` completes a sentence: "took longer than 60 s"."""

    def __init__(self, limit: str, sentence: str) -> None:
        super().__init__(sentence)
        self.limit = limit


class JobCrashed(SandboxError):
    """The process of the job ended without a result, or with one that cannot be read."""


class JobFailed(SandboxError):
    """The job raised an exception of its own. ``kind`` is the name of its class; the message is untrusted text."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class JobCancelled(SandboxError):
    """Nobody waits for the job any more."""


class SandboxUnavailable(SandboxError):
    """No process could be started for the job: a fault of the machine and not of the file."""
