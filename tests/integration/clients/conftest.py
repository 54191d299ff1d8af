"""A running site for official clients: one process runs their tests, and starts it once."""

import html
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.db import connection

from core.key_limits import KeyScope
from retrieval.documents import ingestion, submission
from retrieval.models import Collection
from tests.support.databases import create_database, database, url_of
from tests.support.keys import key_of
from tests.support.site import ROOT, WebServer

NAME = "clients"
QUESTION = "How heavy is the MX-9920-W pump?"
LONG = "# Long report\n\n" + "\n\n".join(
    f"Chapter {n} tells of valve number {n}. " + "It leaks. " * 40 for n in range(90)
)
DOCUMENTS = {
    "pump.md": "# MX-9920-W\n\nThe MX-9920-W pump weighs 3450 grams. Its price is 210 euros.",
    "pool.md": "# Swimming pool\n\nThe swimming pool is open from seven to ten. In winter, the pool closes at eight.",
    "library.md": "# Town library\n\nThe town library is open from nine to five. In winter, it closes at four.",
    "report.md": LONG,
}


def add(collection, source, text):
    ingestion.ingest_document(submission.submit(collection, source, text.encode(), enqueue=False).document.pk)


@pytest.fixture(scope="session")
def keys(django_db_setup, django_db_blocker):
    """Return the keys of a reader, of another reader and of an editor, on a database with documents.

    The editor has also one key for each scope.
    """
    create_database(NAME)
    with django_db_blocker.unblock(), database(NAME):
        library, secret = (
            Collection.objects.create(
                slug=slug, name=slug.title(), visibility="public" if slug == "library" else "staff"
            )
            for slug in ("library", "secret")
        )
        for source, text in DOCUMENTS.items():
            add(library, source, text)
        add(secret, "plans.md", "# Plans\n\nThe merger with Initech is announced in March.")
        users = {
            name: User.objects.create_user(name, is_staff=name == "editor") for name in ("reader", "other", "editor")
        }
        scoped = {scope: key_of(users["editor"], KeyScope(scope)) for scope in ("search", "ask")}
        scoped["listing"] = key_of(users["reader"], lists_sources=True)
        return {**{name: key_of(user) for name, user in users.items()}, **scoped}


@pytest.fixture(scope="session")
def site(keys, tmp_path_factory):
    # Two processes: a client's calls go to either.
    server = WebServer(tmp_path_factory.mktemp(NAME) / "web.log", DATABASE_URL=url_of(NAME), WEB_CONCURRENCY="2")
    yield server
    server.stop()


@pytest.fixture
def rows(django_db_blocker, site):
    """Return a context manager, ``with rows():``, in which the models use the site's database."""

    @contextmanager
    def opened():
        with django_db_blocker.unblock(), database(NAME):
            yield

    return opened


PASSWORD = "correct-horse-battery"


def hidden(page):
    fields = [dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in re.findall(r"<input [^>]*>", page)]
    return {each["name"]: html.unescape(each["value"]) for each in fields if each.get("type") == "hidden"}


@pytest.fixture(scope="session")
def _signing_in(django_db_setup, django_db_blocker, tmp_path_factory):
    create_database("mcp_sign_in")
    settings = {"DATABASE_URL": url_of("mcp_sign_in"), "MCP_SIGN_IN": "true"}

    def manage(*command):
        subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env={**os.environ, **settings}, check=True)

    manage("migrate", "--verbosity", "0")
    with django_db_blocker.unblock(), database("mcp_sign_in"):
        secret = Collection.objects.create(slug="secret", name="Secret", visibility="signed_in")
        add(secret, "plans.md", "# Plans\n\nThe merger is announced in March.")
        # The password is hashed as the site does, not as the tests do.
        User.objects.create(username="ada", password=PBKDF2PasswordHasher().encode(PASSWORD, "salt"))
    server = WebServer(tmp_path_factory.mktemp("mcp_sign_in") / "web.log", **settings)
    server.manage = manage
    yield server
    server.stop()


@pytest.fixture
def signing_in(_signing_in, django_db_blocker):
    """Return a site with MCP_SIGN_IN, where no program is let in, and a function that runs SQL there."""

    def execute(statement, *values):
        with django_db_blocker.unblock(), database("mcp_sign_in"), connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    execute("DELETE FROM allauth_idp_oidc_token")
    # It counts the programs that registered within the minute.
    execute("DELETE FROM ragsite_cache")
    _signing_in.execute = execute
    return _signing_in
