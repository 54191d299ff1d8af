from __future__ import annotations


class EvaluationError(Exception):
    """Base class of the errors of evaluation. Users see the message."""


class UnreadableTestSet(EvaluationError):
    """An error: a file of a test set is missing, or one of its lines is wrong."""


class UntrustworthyMeasurement(EvaluationError):
    """An error: something else was measured than requested, such as a fallback."""
