"""Errors that any app can raise; each docstring names the reader of its message."""

from __future__ import annotations


class RagsiteError(Exception):
    """The base class of errors that the site raises on purpose."""


class ServiceUnavailable(RagsiteError):
    """A part of the site does not answer. For the caller; becomes a 503.

    ``retry_after_seconds`` becomes the header `Retry-After`.
    """

    retry_after_seconds: int | None = None


class ModelFailed(RagsiteError):
    """A language model returned no usable reply in time; rules replace it. For the operator."""


class ImproperModel(RagsiteError):
    """The configuration of a language model is unusable. For the operator."""


class LeaseLost(RagsiteError):
    """Another process or an admin took the job over. For the log; the work is dropped."""


class FilesUnavailable(ServiceUnavailable):
    """The file storage does not answer, or refuses. For the caller; becomes a 503."""


class DiskFull(RagsiteError):
    """The disk is full. For the user whose request would write; becomes a 507."""
