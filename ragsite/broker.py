"""The task queue inside PostgreSQL itself, for sites without a broker."""

from __future__ import annotations

from django.conf import settings
from django.db import connection, transaction
from pgmq.install import get_embedded_install_sql

# Any number: what matters is that every process of the site asks for the same lock.
_INSTALL_LOCK = 7_263_514


def install() -> bool:
    """Make the queue's schema unless it is there, or not used; returns whether it was made."""
    if not settings.CELERY_BROKER_URL.startswith("pgmq:"):
        return False
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_INSTALL_LOCK])
        cursor.execute("SELECT to_regclass('pgmq.meta') IS NOT NULL")
        if cursor.fetchone()[0]:
            return False
        cursor.execute(get_embedded_install_sql())
    return True
