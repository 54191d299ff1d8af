"""Errors that any app can raise; each docstring names the reader of its message.

``str(error)`` is one clear sentence with a next step, in words for that reader.
"""

from __future__ import annotations


class RagsiteError(Exception):
    """The base class of the errors that the site raises on purpose."""


class ServiceUnavailable(RagsiteError):
    """A part of the site does not answer now. For the person whose request needs it; becomes a 503.

    ``retry_after_seconds`` becomes the header `Retry-After`; None leaves it out.
    """

    retry_after_seconds: int | None = None


class ModelFailed(RagsiteError):
    """A language model returned nothing usable in time; rules are used instead. For the operator, in log, metric and
    trace.
    """


class ImproperModel(RagsiteError):
    """A language model cannot be asked as configured. For the operator."""


class LeaseLost(RagsiteError):
    """Another process, or an admin, took the job over. For the log; the work is dropped."""


class FilesUnavailable(ServiceUnavailable):
    """The storage of the documents' files does not answer, or refuses. For the person whose request needs a file;
    becomes a 503."""


class DiskFull(RagsiteError):
    """The disk has no room to save anything. For the person whose request would write; becomes a 507."""
