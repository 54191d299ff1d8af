"""Pools of connections to PostgreSQL, as psycopg is told of them."""

from __future__ import annotations


def pool_of(size: int, *, is_replica: bool = False) -> dict[str, int]:
    """A pool that keeps at most ``size`` connections. Whoever asks a replica that is gone turns to the primary, and
    does not wait for a connection; when it is back, the next one who asks connects.
    """
    pool = {"min_size": 1, "max_size": size, "timeout": 10}
    return pool | {"min_size": 0, "timeout": 1, "reconnect_timeout": 1} if is_replica else pool
