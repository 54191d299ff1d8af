"""What can go wrong between a question and its answer, by who gets to read the message."""

from __future__ import annotations


class InvalidQuestion(Exception):
    """The question cannot be taken. For the person who asked; ``field`` is the input at fault."""

    def __init__(self, message: str, field: str = "question") -> None:
        super().__init__(message)
        self.field = field


class SiteBusy(Exception):
    """The question cannot be taken now. For the person who asked; becomes a 503 with `Retry-After`."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class BudgetSpent(Exception):
    """No more questions today, or for now. For the person who asked; becomes a 429 with `Retry-After`."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NoAnswer(Exception):
    """The sources do not answer the question. Not an error: the answer then says so."""


class GenerationFailed(Exception):
    """The model gave no answer, or broke off. For the operator; never holds a key."""


class TablesUnavailable(Exception):
    """The tables cannot be asked now. For the model that asked, which answers without them."""


class AnswerWithheld(GenerationFailed):
    """The model wrote what must not be shown. ``reason``: `prompt` (what it was told in confidence) or `function`."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The model's answer repeated the {reason} of the site and was withheld.")
        self.reason = reason
