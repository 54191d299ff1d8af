"""Errors that any app can raise. Each docstring says who reads the message."""

from __future__ import annotations


class RagsiteError(Exception):
    """Base class of all errors that the site raises on purpose."""


class ServiceUnavailable(RagsiteError):
    """An error: a part of the site does not respond. The caller gets a 503 with the message.

    ``retry_after_seconds`` becomes the header `Retry-After`.
    """

    retry_after_seconds: int | None = None


class ModelFailed(RagsiteError):
    """An error: a language model gave no usable reply in time. The message is for the operator's log."""


class LanguageModelMisconfigured(RagsiteError):
    """An error: the configuration of a language model is invalid. The message is for the operator's log."""


class LeaseLost(RagsiteError):
    """An error: another process has taken over the job, or an admin has stopped it. The worker logs the message."""


class FilesUnavailable(ServiceUnavailable):
    """An error: the file storage does not respond, or refuses a request. The caller gets a 503 with the message."""


class DiskFull(RagsiteError):
    """An error: the disk is full. The user who wanted to write gets a 507 with the message."""
