from __future__ import annotations

from core.exceptions import ModelFailed


class InvalidQuestion(Exception):
    """An error: the question cannot be answered in this form. The user reads the message."""

    def __init__(self, message: str, field: str = "question") -> None:
        super().__init__(message)
        self.field = field


class TemporarilyUnanswerable(Exception):
    """An error: the question cannot be answered now, but later. The user reads the message."""

    status: int

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class SiteBusy(TemporarilyUnanswerable):
    status = 503


class BudgetSpent(TemporarilyUnanswerable):
    status = 429


class NoAnswerFound(Exception):
    """An error: the sources do not answer the question."""


class TablesUnavailable(Exception):
    """An error: the tables cannot be queried now. The model reads the message."""


class AnswerWithheld(ModelFailed):
    """An error: the model's text reveals rules of the prompt or the name of the function that it can call.

    ``reason`` is `prompt` or `function`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"The model's answer repeated the {reason} of the site and was withheld.")
        self.reason = reason
