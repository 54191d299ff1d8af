"""A node of a distributed database that is away.

What lies on it cannot be read, and no statement over all shards is answered: nothing is left out silently. What is on
the coordinator alone goes on: signing in, conversations, lists of documents.
"""

from __future__ import annotations

from django.utils.translation import gettext as _


def is_node_lost(error: BaseException | None) -> bool:
    """Whether the coordinator told that it could not reach a node. Its message names the node, for the log."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        # The class of connection exceptions; one's own connection, when it is lost, has no state.
        if (getattr(error, "sqlstate", None) or "").startswith("08"):
            return True
        error = error.__cause__ or error.__context__
    return False


def message() -> str:
    """For whoever asked."""
    return _("A part of the database does not answer, so the documents cannot be read. Please try again in a minute.")
