"""Databases beside the one of pytest-django, which wipes its tables after every test that commits."""

import subprocess
from contextlib import contextmanager

import psycopg
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.db import connection, connections
from psycopg import sql

from ragsite.postgres.embedded import find_binaries
from tests.support import cluster

# Each counts a restart of the test database's server, which ended all connections: threads must open theirs again.
RESTARTS = []


def create_database(name, template="migrated"):
    """Create a database as a copy of ``template``, to which no client may be connected.

    ``migrated`` has the tables of the site, ``template1`` none.
    """
    settings.EMBEDDED_POSTGRES.acquire_server()
    with psycopg.connect(f"{_server()}&dbname=postgres", autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))


def url_of(name):
    """Return the database, in a form that another process can connect with."""
    if settings.EMBEDDED_POSTGRES is None:
        return cluster.url_of(name)
    return f"postgresql://postgres@/{name}?host={settings.EMBEDDED_POSTGRES.socket_dir}"


@contextmanager
def database(name):
    """Use the named database for the models of this process, and of the threads that it starts."""
    _close_connections()
    # All threads share this description; their connections do not outlive what they are asked to do.
    described = connection.settings_dict
    before = described["NAME"], described["CONN_MAX_AGE"]
    described["NAME"], described["CONN_MAX_AGE"] = name, 0
    try:
        yield
    finally:
        _close_connections()
        described["NAME"], described["CONN_MAX_AGE"] = before


def _close_connections():
    connections.close_all()
    # The thread in which asynchronous code queries the database keeps its connection when no request ends there.
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


def _server():
    return f"postgresql://postgres@/?host={settings.EMBEDDED_POSTGRES.socket_dir}"


def dump(name, file):
    _run("pg_dump", "--format=custom", "--compress=0", f"--file={file}", f"{_server()}&dbname={name}")


def restore(name, file):
    """Restore the dumped database as a new one with this name."""
    create_database(name, "template1")
    _run("pg_restore", "--no-owner", f"--dbname={_server()}&dbname={name}", str(file))


def _run(program, *arguments):
    subprocess.run([find_binaries() / program, *arguments], check=True, capture_output=True)
