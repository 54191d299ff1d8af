"""PostgreSQL and caches."""

from __future__ import annotations

from typing import Any

from ragsite.postgres.embedded import EmbeddedPostgres
from ragsite.settings import env
from ragsite.settings.paths import DATA_DIR

DATABASE_URL = env.text("DATABASE_URL")
EMBEDDED_POSTGRES = None if DATABASE_URL else EmbeddedPostgres(DATA_DIR)
database_url = EMBEDDED_POSTGRES.url if EMBEDDED_POSTGRES else DATABASE_URL

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "ragsite.postgres.backend",
        **env.database_parameters(database_url),
        "CONN_HEALTH_CHECKS": True,
        # One a thread; the processes of the web server keep a pool (ragsite/web.py).
        "CONN_MAX_AGE": None,
    }
}

CACHES: dict[str, dict[str, Any]] = {
    # Shared by all processes: the limits of allauth are counted here.
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "ragsite_cache",
        # Nobody shall be able to push the counts of others out.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
    # For what any process may work out for itself.
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}
