"""What pages say."""

from __future__ import annotations

from typing import Any


def messages(response: Any) -> list[str]:
    """The sentences that Django's admin shows once."""
    return [str(message) for message in response.context["messages"]]
