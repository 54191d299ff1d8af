"""API keys of the tests' users."""

from ragsite.accounts.keys import issue_key
from retrieval.key_limits import Scope


def key_of(user, *scopes, **limits):
    """What a program sends to act as ``user``; with all scopes unless some are named."""
    return issue_key(user, "test", scopes or tuple(Scope), **limits).secret
