"""The limits of an API key on the rights of its user.

Authentication with a key sets a :class:`KeyLimits` as ``key_limits`` of the request's user. Every decision on rights
takes it into account.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.user_types import AnyUser


class Scope(StrEnum):
    SEARCH = "search"
    ASK = "ask"
    DOCUMENTS_WRITE = "documents:write"
    ADMIN = "admin"


_PERMISSIONS: dict[str, frozenset[Scope]] = {
    "retrieval.view_document": frozenset({Scope.SEARCH, Scope.DOCUMENTS_WRITE}),
    "retrieval.add_document": frozenset({Scope.DOCUMENTS_WRITE}),
    "retrieval.change_document": frozenset({Scope.DOCUMENTS_WRITE}),
    "retrieval.delete_document": frozenset({Scope.DOCUMENTS_WRITE}),
}


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """``key`` is the key's public part. ``collections`` are the only ones it reaches; None: all of the user's."""

    key: str
    scopes: frozenset[Scope]
    collections: frozenset[int] | None = None

    def permit(self, permission: str) -> bool:
        """Whether the user's permission may be used with the key.

        What concerns the site as a whole, such as reading everybody's answers, takes a key without a list of
        collections.
        """
        if not self.scopes.isdisjoint(_PERMISSIONS.get(permission, frozenset())):
            return True
        return Scope.ADMIN in self.scopes and (self.collections is None or permission in _PERMISSIONS)


def limits_of(user: AnyUser) -> KeyLimits | None:
    """The limits of the key that the request came with; None for a person, and for a user whom a key does not limit."""
    limits: KeyLimits | None = getattr(user, "key_limits", None)
    return limits


def set_limits(user: AnyUser, limits: KeyLimits | None) -> None:
    user.key_limits = limits  # type: ignore[union-attr]
