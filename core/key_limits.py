"""What an API key may do. Authentication stores it as ``user.key_limits``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.user_types import AnyUser


class KeyScope(StrEnum):
    SEARCH = "search"
    ASK = "ask"
    DOCUMENTS_WRITE = "documents:write"
    ADMIN = "admin"


_PERMISSIONS: dict[str, frozenset[KeyScope]] = {
    "retrieval.view_document": frozenset({KeyScope.SEARCH, KeyScope.DOCUMENTS_WRITE}),
    "retrieval.add_document": frozenset({KeyScope.DOCUMENTS_WRITE}),
    "retrieval.change_document": frozenset({KeyScope.DOCUMENTS_WRITE}),
    "retrieval.delete_document": frozenset({KeyScope.DOCUMENTS_WRITE}),
}


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """What one API key may do. ``key`` is its public part.

    If ``collections`` is None, the key may use all collections of its user. A key with a ``source`` may only send
    documents to this source.
    """

    key: str
    scopes: frozenset[KeyScope]
    collections: frozenset[int] | None = None
    source: int | None = None

    def may_use(self, permission: str) -> bool:
        """Return whether the key may use a permission that its user has.

        A key that is limited to some collections has no permissions for the whole site.
        """
        if not self.scopes.isdisjoint(_PERMISSIONS.get(permission, frozenset())):
            return True
        return KeyScope.ADMIN in self.scopes and (self.collections is None or permission in _PERMISSIONS)


def get_limits(user: AnyUser) -> KeyLimits | None:
    """Return the limits of the API key in use; None for a person or a key without limits."""
    limits: KeyLimits | None = getattr(user, "key_limits", None)
    return limits


def set_limits(user: AnyUser, limits: KeyLimits | None) -> None:
    user.key_limits = limits  # type: ignore[union-attr]
