"""A sandbox for untrusted files: they are read in separate processes with limits. PURE.

:func:`run` runs one function on one file; :func:`state` is the state of this process's sandbox.
"""

from retrieval.documents.sandbox.client import Source, StillWanted, require_guards, run, state
from retrieval.documents.sandbox.confinement import (
    JobCancelled,
    JobCrashed,
    JobFailed,
    JobLimits,
    LimitExceeded,
    SandboxError,
    SandboxUnavailable,
)
from retrieval.documents.sandbox.template_process import SandboxState

__all__ = [
    "JobCancelled",
    "JobCrashed",
    "JobFailed",
    "JobLimits",
    "LimitExceeded",
    "SandboxError",
    "SandboxState",
    "SandboxUnavailable",
    "Source",
    "StillWanted",
    "require_guards",
    "run",
    "state",
]
