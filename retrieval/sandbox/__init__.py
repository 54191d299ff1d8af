"""A sandbox for bytes: what reads untrusted files runs in processes of its own, with limits. PURE.

:func:`run` runs one function on one file; :func:`state` says how the sandbox of this process is doing.
"""

from retrieval.sandbox.client import Source, State, StillWanted, run, state
from retrieval.sandbox.confinement import Limits
from retrieval.sandbox.errors import (
    JobCancelled,
    JobCrashed,
    JobFailed,
    LimitExceeded,
    SandboxError,
    SandboxUnavailable,
)

__all__ = [
    "JobCancelled",
    "JobCrashed",
    "JobFailed",
    "LimitExceeded",
    "Limits",
    "SandboxError",
    "SandboxUnavailable",
    "Source",
    "State",
    "StillWanted",
    "run",
    "state",
]
