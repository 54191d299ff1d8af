"""A running site for official clients: one process runs their tests, and starts it once."""

from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User

from retrieval.documents import ingestion, submission
from retrieval.key_limits import Scope
from retrieval.models import Collection
from tests.support.databases import create_database, database, url_of
from tests.support.keys import key_of
from tests.support.site import WebServer

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
    ingestion.ingest(submission.submit(collection, source, text.encode(), enqueue=False).document.pk)


@pytest.fixture(scope="session")
def keys(django_db_setup, django_db_blocker):
    """A database with documents, and the keys of a reader, of another one and of an editor; of that one also with one
    scope each."""
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
        scoped = {scope: key_of(users["editor"], Scope(scope)) for scope in ("search", "ask")}
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
    """``with rows():`` the models are those of the site."""

    @contextmanager
    def opened():
        with django_db_blocker.unblock(), database(NAME):
            yield

    return opened
