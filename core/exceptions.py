"""Errors that any app can raise. Each docstring says who reads the message."""

from __future__ import annotations


class RagsiteError(Exception):
    """Base of all errors that the site raises on purpose."""


class ServiceUnavailable(RagsiteError):
    """A part of the site does not answer. The caller gets a 503 with the message.

    ``retry_after_seconds`` becomes the header `Retry-After`.
    """

    retry_after_seconds: int | None = None


class ModelFailed(RagsiteError):
    """A language model gave no usable reply in time. The site continues without it. The operator reads the message."""


class ImproperModel(RagsiteError):
    """The configuration of a language model is invalid. The operator reads the message."""


class LeaseLost(RagsiteError):
    """Another process has the job now, or an admin stopped it. The worker drops its work and logs the message."""


class FilesUnavailable(ServiceUnavailable):
    """The file storage does not answer or refuses. The caller gets a 503 with the message."""


class DiskFull(RagsiteError):
    """The disk is full. The user who wanted to write gets a 507 with the message."""
