"""A database of the tests' own: an embedded PostgreSQL under a temporary folder, started before settings are read."""

import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import django
import hypothesis
import pytest

from tests.support import made_once

# Hypothesis draws new examples each time. Nearly all faults show within 30 examples; a test that needs more sets it.
# The profile is registered here, because such tests take the rest from the profile when they are imported.
hypothesis.settings.register_profile("suite", max_examples=30, deadline=None, database=None)
hypothesis.settings.load_profile("suite")

_DATA_DIR = Path(tempfile.mkdtemp(prefix="ragsite-tests-"))
made_once.share(_DATA_DIR)
# A developer's .env or shell must not decide what is tested.
_SETTINGS = (
    "OPENAI_ EMBEDDING_ RETRIEVAL_ RERANK_ CROSS_ENCODER_ BM25_ CHAT_ CELERY_ DATABASE_ CACHE_ EVALUATE_ JUDGE_ "
    "ANSWER_ ANSWERS_ QUESTION_ OIDC_ SAML_ SIGN_UP LOCAL_PASSWORDS STAFF_REQUIRES_MFA EMAIL_ OTEL_ LOG_ LOCAL_MODEL "
    "SLACK_"
)
for _name in list(os.environ):
    if _name.startswith(tuple(_SETTINGS.split())):
        del os.environ[_name]
# A shell starts background jobs with SIGINT ignored, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Every process that a test starts would compile everything again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ["DATA_DIR"] = str(_DATA_DIR)
os.environ["RAGSITE_DOTENV"] = "false"
# Twice as fast as the default, which has tests of its own.
os.environ["EMBEDDING_MODEL"] = "all-MiniLM-L6-v2"
# The embedder's graph takes seconds to write.
(made_once.folder() / "models").mkdir(exist_ok=True)
if made_once.folder() != _DATA_DIR:
    (_DATA_DIR / "models").symlink_to(made_once.folder() / "models")
if "TEST_CITUS_URL" in os.environ:
    os.environ["DATABASE_URL"] = os.environ["TEST_CITUS_URL"]
# Here and not in pyproject.toml: from there the settings would be read before this file.
os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
django.setup()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes():
    """Let each process of a parallel run execute the lines above, with a folder and a server of its own.

    It does so before the settings are read.
    """
    del os.environ["DJANGO_SETTINGS_MODULE"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the tests of a folder with shared sites in one process, which alone starts them; spread others by file."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            shared = ("tests/browser/", "tests/integration/clients/")
            return next(filter(nodeid.startswith, shared), None) or super()._split_scope(nodeid)

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_finish():
    """Let the garbage collector pass over what stays to the end: a million objects."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path):
    """On a Citus cluster, what tests another database than the site's is left out."""
    if "TEST_CITUS_URL" not in os.environ:
        return None
    from tests.support.cluster import LEFT_OUT

    place = collection_path.relative_to(Path(__file__).parent).as_posix()
    return True if place in LEFT_OUT else None


def pytest_collection_modifyitems(items):
    if "TEST_CITUS_URL" in os.environ:
        from tests.support.cluster import LEFT_OUT

        items[:] = [item for item in items if not item.nodeid.removeprefix("tests/").startswith(tuple(LEFT_OUT))]


def pytest_unconfigure():
    from django.conf import settings

    if settings.configured and settings.EMBEDDED_POSTGRES is not None:
        assert _DATA_DIR.resolve() == settings.DATA_DIR
        settings.EMBEDDED_POSTGRES.release_server()
    shutil.rmtree(_DATA_DIR, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_setup(request, django_test_environment, django_db_modify_db_settings, django_db_blocker):
    """Make the test database, and one like it named ``migrated`` to copy, on a server that does not wait for the disk.

    Its data are lost with the server. In a parallel run, all processes have copies of one such server's files.
    """
    from django.conf import settings
    from django.db import connection
    from django.test.utils import setup_databases

    from tests.support.databases import create_database

    def make_database():
        # Also where no test is marked as one of the database: those in the browser have databases of their own.
        with django_db_blocker.unblock():
            # It goes with its server; dropping it first would wait for every thread that ever asked it.
            setup_databases(verbosity=0, interactive=False, keepdb=True)

    def set_up():
        make_database()
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
                cursor.execute(f"ALTER SYSTEM SET {setting} = off")
            # Emptied tables are looked for in all of it.
            cursor.execute("ALTER SYSTEM SET shared_buffers = '128MB'")
            cursor.execute("SELECT pg_reload_conf()")
        connection.close()
        create_database("migrated", connection.settings_dict["NAME"])

    server = settings.EMBEDDED_POSTGRES
    if server is None:
        from tests.support import cluster

        make_database()
        name = connection.settings_dict["NAME"]
        with django_db_blocker.unblock():
            cluster.distribute(name)
            connection.close()
        request.addfinalizer(partial(cluster.drop, name))  # noqa: PT021
        return
    if made_once.folder() == _DATA_DIR or server.cluster.exists():
        set_up()
    else:

        def set_up_and_copy(path):
            set_up()
            server.stop()
            made_once.copy_files(server.cluster, path)
            server.ensure_running()

        copied, is_mine = made_once.made_once("cluster", set_up_and_copy)
        if not is_mine:
            made_once.copy_files(copied, server.cluster)
            name = f"test_{connection.settings_dict['NAME']}"
            settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


# `migrate` wrote these tables: no test changes them, and writing them again after each test is slower than most tests.
_KEPT_TABLES = {"django_content_type", "auth_permission"}
# The limit is for all tables with their indexes; empty, they take less than two million bytes.
_LARGEST_BYTES = 6 * 2**20


@pytest.fixture(scope="session", autouse=True)
def _quick_flush():
    """Delete the few rows of a test that commits.

    Truncating forty tables and migrating again takes fifty times as long.
    """
    from django.core.management.commands import flush
    from django.db import DatabaseError
    from django.db.backends.postgresql.operations import DatabaseOperations

    def sql_flush(self, style, tables, **_options):
        names = [self.quote_name(table) for table in tables if table not in _KEPT_TABLES]
        sizes = " + ".join(f"pg_total_relation_size('{name}')" for name in names)
        # The coordinator of a cluster has no sizes of the shards.
        on_cluster = "TEST_CITUS_URL" in os.environ
        vectors = "true" if on_cluster else "pg_relation_size('retrieval_chunkembedding') > 0"
        # Deleted rows stay in the files, and deleted vectors in their index: alike by hundreds, they would hide others.
        return [
            f"""DO $$ BEGIN
                PERFORM set_config('ragsite.audit_retention', 'on', true);
                IF {sizes} > {_LARGEST_BYTES} THEN
                    TRUNCATE {", ".join(names)};
                ELSE
                    {"; ".join(f"DELETE FROM {name}" for name in names)};
                    IF {vectors} THEN
                        TRUNCATE retrieval_chunkembedding;
                    END IF;
                END IF;
            END $$"""
        ]

    execute = DatabaseOperations.execute_sql_flush

    def execute_sql_flush(self, statements):
        # A thread of the test may still be writing: what it adds to a deleted row, or a deadlock, ends this attempt.
        for last in (*[False] * 20, True):
            try:
                execute(self, statements)
            except DatabaseError:
                if last:
                    raise
                time.sleep(0.5)
            else:
                return

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", sql_flush)
        patch.setattr(DatabaseOperations, "execute_sql_flush", execute_sql_flush)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *_arguments, **_options: None)
        yield


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory):
    """Return the folder of the embedder's graph, made once for the whole run."""
    return made_once.folder() / "models"


@pytest.fixture(scope="session")
def django_db_modify_db_settings():
    from django.conf import settings

    if "TEST_CITUS_URL" in os.environ:
        from django.db import connection

        # Elsewhere threads keep their connections, as they do on a site: to open one takes longer than most queries.
        # The cluster stays, and a database is dropped only when no thread is connected to it.
        settings.DATABASES["default"]["CONN_MAX_AGE"] = 0
        # All processes of a parallel run share the cluster.
        connection.settings_dict["TEST"]["NAME"] = f"test_ragsite_{os.getpid()}"


@pytest.fixture(scope="session", autouse=True)
def _quick_settings():
    """Use a fast hash of passwords, because a good one takes a fifth of a second, and list no static files."""
    from django.test import override_settings

    hashers = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with override_settings(PASSWORD_HASHERS=hashers, WHITENOISE_AUTOREFRESH=True):
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_database():
    """Close a search thread's connection to the database of an earlier test, or to a server that was killed.

    Threads that search are kept for the next test, with their connections.
    """
    from django.db.backends.base.base import BaseDatabaseWrapper

    from tests.support.databases import RESTARTS

    # A statement or a transaction begins with one of these; pytest-django patches `ensure_connection` itself.
    def own(method):
        def of_own_database(self, *arguments, **options):
            is_elsewhere = (
                self.connection is not None
                and not self.in_atomic_block
                and not self.connection.closed
                and self.settings_dict["NAME"] not in (None, self.connection.info.dbname)
            )
            opened, restarts = getattr(self, "_seen", (None, 0))
            if opened is not self.connection:
                self._seen = self.connection, len(RESTARTS)
            is_ended = opened is self.connection is not None and restarts != len(RESTARTS) and not self.in_atomic_block
            if is_elsewhere or is_ended:
                self.close()
            return method(self, *arguments, **options)

        return of_own_database

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_cursor", "get_autocommit"):
            patch.setattr(BaseDatabaseWrapper, name, own(getattr(BaseDatabaseWrapper, name)))
        yield


@pytest.fixture(autouse=True)
def _broker_in_memory(request, settings):
    """Send tasks to a queue in memory without a reader; the tests of the worker use the real broker."""
    if request.node.get_closest_marker("worker") or request.node.get_closest_marker("browser"):
        yield
        return
    from ragsite.celery import app

    previous = app.conf.broker_url, app.conf.broker_transport_options
    app.conf.broker_url, app.conf.broker_transport_options = "memory://", {}
    app.amqp._producer_pool = None
    app._pool = None
    yield
    app.conf.broker_url, app.conf.broker_transport_options = previous
    app.amqp._producer_pool = None
    app._pool = None


@pytest.fixture(autouse=True)
def _empty_queue():
    """Questions of an earlier test, taken and never answered, keep no places."""
    from chat.streaming.admission import ADMISSION

    ADMISSION._reserved.clear()


@pytest.fixture
def collection():
    from retrieval.models import Collection

    return Collection.objects.create(slug="library", name="Library", text_search_configuration="english")


@pytest.fixture
def ingest():
    """``ingest(collection, source, text)``: the document, read in this process."""

    def _ingest(collection, source, text, **options):
        from retrieval.documents import ingestion, submission

        data = text.encode() if isinstance(text, str) else text
        submitted = submission.submit(collection, source, data, enqueue=False, **options)
        ingestion.ingest_document(submitted.document.pk)
        submitted.document.refresh_from_db()
        return submitted.document

    return _ingest
