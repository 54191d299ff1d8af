"""A Django database backend that starts the embedded server at the first connection."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, object]) -> Any:
        if settings.EMBEDDED_POSTGRES is not None:
            settings.EMBEDDED_POSTGRES.acquire()
        return super().get_new_connection(conn_params)
