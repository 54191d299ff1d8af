"""API keys of the tests' users."""

from __future__ import annotations

from typing import Any

from ragsite.accounts.keys import issue_key
from retrieval.key_limits import Scope


def key_of(user: Any, *scopes: Scope, **limits: Any) -> str:
    """What a program sends to act as ``user``; with all scopes unless some are named."""
    return issue_key(user, "test", scopes or tuple(Scope), **limits).secret
