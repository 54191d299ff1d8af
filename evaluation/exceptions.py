from __future__ import annotations


class EvaluationError(Exception):
    """Base of the exceptions of evaluation; users see the message."""


class UnreadableTestSet(EvaluationError):
    """A file of a test set is missing, or one of its lines is wrong."""


class UntrustworthyRun(EvaluationError):
    """The measured thing was not the requested thing, so there are no figures."""
