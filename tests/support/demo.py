"""The demo documents as a first visitor finds them, read once for all processes of a run."""

from pathlib import Path

from django.conf import global_settings, settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import OutputWrapper
from django.test import override_settings

from ragsite.processes.first_run import load_demo_documents
from tests.support import cluster, databases, made_once

PASSWORD = "a long enough one"


def make_demo_database(name):
    """Make a database with the demo documents and the administrator ``admin``."""

    def make(path):
        databases.create_database(name)
        path.mkdir()
        _fill(name, path / "loaded")
        databases.dump(name, path / "database")
        made_once.copy_files(settings.MEDIA_ROOT, path / "media")

    if settings.EMBEDDED_POSTGRES is None:
        cluster.create(name)
        with databases.database(name):
            call_command("migrate", verbosity=0, interactive=False)
            cluster.distribute(name)
        _fill(name, settings.DATA_DIR / "loaded")
        return
    path, is_mine = made_once.made_once("demo", make)
    if not is_mine:
        databases.restore(name, path / "database")
        made_once.copy_files(path / "media", settings.MEDIA_ROOT)


def _fill(name, marker):
    with databases.database(name):
        with Path("/dev/null").open("w") as nowhere:
            counts = load_demo_documents(settings.BASE_DIR / "demo", marker, OutputWrapper(nowhere))
        assert counts.added >= 30
        assert counts.failures == ()
        # Hashed as the servers do, which are processes of their own.
        with override_settings(PASSWORD_HASHERS=global_settings.PASSWORD_HASHERS):
            get_user_model().objects.create_superuser("admin", password=PASSWORD)
