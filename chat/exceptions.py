"""Errors between a question and its answer; each says who may read its message."""

from __future__ import annotations

from core.exceptions import ModelFailed


class InvalidQuestion(Exception):
    """The question cannot be taken. For the person who asked; ``field`` is the input at fault."""

    def __init__(self, message: str, field: str = "question") -> None:
        super().__init__(message)
        self.field = field


class AskLater(Exception):
    """The question cannot be taken now. For the person who asked; becomes a response with `Retry-After`."""

    status: int

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class SiteBusy(AskLater):
    """Too many questions are being answered."""

    status = 503


class BudgetSpent(AskLater):
    """The caller may ask no more questions today, or for now."""

    status = 429


class NoAnswer(Exception):
    """The sources do not answer the question. This is not an error: the answer then says so."""


class TablesUnavailable(Exception):
    """The tables cannot be queried now. For the model that queried them, which answers without them."""


class AnswerWithheld(ModelFailed):
    """The model wrote something that must not be shown. ``reason``: `prompt` (its confidential rules) or `function`."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The model's answer repeated the {reason} of the site and was withheld.")
        self.reason = reason
