"""Exceptions of evaluation."""

from __future__ import annotations


class EvaluationError(Exception):
    """Base of the exceptions that evaluation raises. The message is for the engineer who started it."""


class UnreadableTestSet(EvaluationError):
    """A test set lacks a file, or a line of one does not say what it should."""


class UntrustworthyRun(EvaluationError):
    """The measurement is not the one that was requested, so it has no figures."""
