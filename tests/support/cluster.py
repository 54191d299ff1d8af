"""A test database on a Citus cluster that runs already: ``make test-citus`` names its coordinator."""

import os
from functools import cache
from pathlib import Path

import psycopg
from django.core.management import call_command
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.support.citus_cluster import run

COORDINATOR = os.environ.get("TEST_CITUS_URL", "")
"""The coordinator, with a database in which its nodes are known; empty for the embedded server."""

# These tests do not use the site's database, or use one copied from another.
LEFT_OUT = {
    "browser": "pages do not differ by database; each test copies a prepared one, which Citus cannot",
    "integration/test_embedded_postgres.py": "the embedded server",
    "integration/test_killed.py": "kills the embedded server",
    "integration/test_serve.py": "`serve` with the embedded server",
    "integration/test_processes.py": "`serve` with the embedded server",
    "integration/test_observability.py": "the log of the embedded server",
    "integration/faults/test_database.py": "stops the embedded server; test_citus.py stops a node",
    "integration/faults/test_disk.py": "the embedded server on a small disk",
    "integration/operations/test_backup.py": "databases of one server; test_citus.py backs a cluster up",
    "integration/retrieval/test_prepared_commands.py": "preparation of the embedded database",
    "integration/clients": "copies a prepared database",
    # Single tests, by how their names begin.
    "integration/test_connections.py::test_a_pooled_connection_is_asked_again": "an embedded server's connections",
    "integration/retrieval/test_search.py::test_the_index_is_used": "the plan of one server",
    "integration/retrieval/test_pruned_matching.py::test_the_index_is_used": "the plan of one server",
    "integration/retrieval/test_rights.py::test_the_vector_index_is_used": "the plan of one server",
}


def url_of(name):
    return make_conninfo(COORDINATOR, dbname=name)


@cache
def nodes():
    """(host, port, is the coordinator) of each node of the cluster."""
    with psycopg.connect(COORDINATOR) as server:
        return server.execute(
            "SELECT nodename, nodeport, groupid = 0 FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
        ).fetchall()


def join_nodes(name):
    """Make the database of this name, which the coordinator has, one of the whole cluster."""
    for host, port, is_coordinator in nodes():
        node = make_conninfo(COORDINATOR, host=host, port=port)
        with psycopg.connect(node, autocommit=True) as server:
            if not is_coordinator:
                server.execute("SET citus.enable_create_database_propagation TO off")
                server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
                server.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
            server.execute("SELECT pg_reload_conf()")
        with psycopg.connect(make_conninfo(node, dbname=name), autocommit=True) as server:
            server.execute("CREATE EXTENSION IF NOT EXISTS citus")
    with psycopg.connect(url_of(name), autocommit=True) as server:
        for host, port, is_coordinator in nodes():
            join = "citus_set_coordinator_host" if is_coordinator else "citus_add_node"
            server.execute(sql.SQL("SELECT {}(%s, %s)").format(sql.Identifier(join)), [host, port])


def distribute(name):
    """Distribute the test database, which is migrated."""
    join_nodes(name)
    call_command("distribute", shards=4, verbosity=0)
    # The settings of the database apply to new connections.
    connection.close()


def create(name):
    """Create an empty database, on the coordinator alone."""
    with psycopg.connect(COORDINATOR, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def stop(port):
    """Stop a worker as a machine stops that loses its power."""
    with psycopg.connect(make_conninfo(COORDINATOR, port=port)) as server:
        row = server.execute("SHOW data_directory").fetchone()
    _STOPPED[port] = Path(row[0])
    _control(port, "-m", "immediate", "stop")


def start(port):
    """Start a worker that was stopped; the data is as it was."""
    _control(port, "-l", str(_STOPPED[port] / "log"), "start")
    del _STOPPED[port]


_STOPPED = {}


def _control(port, *arguments):
    data = _STOPPED[port]
    run(Path(os.environ["TEST_CITUS_PGDIR"]), "pg_ctl", "-D", str(data), "-w", *arguments, user=data.stat().st_uid)


def drop(name):
    """Drop the database on every node of the cluster."""
    for host, port, _ in reversed(nodes()):
        with psycopg.connect(make_conninfo(COORDINATOR, host=host, port=port), autocommit=True) as server:
            server.execute("SET citus.enable_create_database_propagation TO off")
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
