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

# Searches read from streaming replicas of it.
DATABASE_REPLICA_URLS = env.names("DATABASE_REPLICA_URLS")
for _number, _url in enumerate(DATABASE_REPLICA_URLS, start=1):
    DATABASES[f"replica_{_number}"] = _replica = {
        **DATABASES["default"],
        "ENGINE": "ragsite.postgres.backend",
        **env.database_parameters(_url),
    }
    # One that is gone is given up soon.
    _replica["OPTIONS"] |= {"connect_timeout": 2, "tcp_user_timeout": 2000}
DATABASE_ROUTERS = ["retrieval.infrastructure.database.Router"] if DATABASE_REPLICA_URLS else []

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
