from __future__ import annotations


class EvaluationError(Exception):
    """Base of the errors of evaluation. Users see the message."""


class UnreadableTestSet(EvaluationError):
    """A file of a test set is missing, or one of its lines is wrong."""


class UntrustworthyRun(EvaluationError):
    """Something else was measured than requested, such as a fallback, so the run has no figures."""
