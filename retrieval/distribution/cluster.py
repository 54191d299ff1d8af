"""The nodes of a Citus cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from django.db import connection

from retrieval.distribution.tables import DISTRIBUTED, is_distributed

OLDEST_CITUS = 12


@dataclass(frozen=True, slots=True)
class Node:
    """``is_reachable`` is what the coordinator found just now."""

    name: str
    holds_shards: bool
    is_reachable: bool


def trouble() -> str:
    """Why tables cannot be distributed on this PostgreSQL, in a sentence; empty when they can."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT default_version, installed_version FROM pg_available_extensions WHERE name = 'citus'")
        row = cursor.fetchone()
        if row is None:
            return "This PostgreSQL has no Citus: install it on every node, or stay with one server."
        if row[1] is None:
            return "Citus is not set up in this database: run CREATE EXTENSION citus in it, and add the nodes."
        if int(row[1].split(".")[0]) < OLDEST_CITUS:
            return f"This is Citus {row[1]}: version {OLDEST_CITUS} or later is needed."
    found = nodes()
    if not any(node.holds_shards for node in found):
        return "The cluster has no node that holds shards: add one with citus_add_node."
    lost = [node.name for node in found if not node.is_reachable]
    if lost:
        return f"These nodes do not answer: {', '.join(lost)}."
    return ""


def has_citus() -> bool:
    """Whether Citus is set up in this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL")
        return bool(cursor.fetchone()[0])


def nodes() -> list[Node]:
    """The nodes of the cluster that holds the site's tables, in order, each of which is asked; none of one server."""
    if not has_citus():
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nodename || ':' || nodeport, shouldhaveshards, coalesce(success, false) FROM pg_dist_node "
            "LEFT JOIN run_command_on_all_nodes('SELECT 1', give_warning_for_connection_errors => true) USING (nodeid) "
            "WHERE isactive AND noderole = 'primary' ORDER BY nodeid"
        )
        return [Node(*row) for row in cursor.fetchall()]


@cache
def count_vector_indexes() -> int:
    """How many indexes hold the vectors together: one, or one of each shard.

    Asked once a process: none of the site's runs while its database is distributed.
    """
    return shard_count() if is_distributed() else 1


def shard_count() -> int:
    """In how many shards the tables lie; 0 where they are not distributed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = %s::regclass", [DISTRIBUTED[0]])
        return int(cursor.fetchone()[0])
