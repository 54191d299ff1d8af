"""API keys of the tests' users."""

from core.key_limits import KeyScope
from ragsite.accounts.keys import issue_key


def key_of(user, *scopes, **limits):
    """Return an API key of ``user``; with all scopes unless some are named."""
    return issue_key(user, "test", scopes or tuple(KeyScope), **limits).secret
