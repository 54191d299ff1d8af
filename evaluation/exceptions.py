"""What can go wrong in evaluation, by who gets to read the message."""

from __future__ import annotations


class EvaluationError(Exception):
    """Base of everything that evaluation raises on purpose. For the engineer who started it."""


class UnreadableTestSet(EvaluationError):
    """A test set lacks a file, or a line of one does not say what it should."""


class UntrustworthyRun(EvaluationError):
    """What was measured is not what was asked for, so no figure is given."""
