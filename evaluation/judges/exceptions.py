"""Why there is no score. The message is stored with the metric and shown to the admin."""

from __future__ import annotations

from evaluation.exceptions import EvaluationError


class JudgeError(EvaluationError):
    """Base of everything that keeps a judge from giving a score."""


class UnusableJudgement(JudgeError):
    """The judge answered, but with nothing that a score can be made of. The other metrics can still be measured."""


class NotMeasurable(UnusableJudgement):
    """The metric cannot tell anything of this answer, however often it is tried."""


class JudgeUnavailable(JudgeError):
    """The judge cannot be asked now: not configured, away, late, or without vectors. No other metric fares better."""


class JudgeBudgetSpent(JudgeError):
    """The day's tokens are consumed. Trying again today does not help."""
