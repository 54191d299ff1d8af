"""Exceptions of evaluation."""

from __future__ import annotations


class EvaluationError(Exception):
    """Base of the exceptions of evaluation. The message is for the person who started it."""


class UnreadableTestSet(EvaluationError):
    """A file of a test set is missing, or a line of it is wrong."""


class UntrustworthyRun(EvaluationError):
    """Something else than requested was measured, so there are no figures."""
