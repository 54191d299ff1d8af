from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.admin.apps import AdminConfig
from django.db import connection, transaction
from django.db.models.signals import post_migrate, post_save

# The key of a PostgreSQL advisory lock, equal in all processes.
_INSTALL_LOCK = 7_263_514


class AccountsAdminConfig(AdminConfig):
    default_site = "ragsite.accounts.admin_site.AccountsAdminSite"


class RagsiteConfig(AppConfig):
    name = "ragsite"

    def ready(self) -> None:
        from ragsite import checks  # noqa: F401  (they register themselves)
        from ragsite.accounts import roles
        from ragsite.operations import audit_log  # noqa: F401  (they register themselves)
        from ragsite.operations.audited_models import audit_all_models

        audit_all_models()
        if settings.MCP_SIGN_IN:
            from ragsite.accounts import mcp_sign_in  # noqa: F401  (its sweep registers itself)
        # The queue is created after the migrations of `retrieval`, the first app that uses it.
        post_migrate.connect(install_broker_queues, sender=apps.get_app_config("retrieval"))
        # Roles have permissions for models of all apps, so they are created after the migrations of the last app,
        # `evaluation`.
        post_migrate.connect(roles.create_roles, sender=apps.get_app_config("evaluation"))

        from ragsite.models.account import forget_other_addresses

        post_save.connect(forget_other_addresses, sender=settings.AUTH_USER_MODEL)


def install_broker_queues(using: str, **_: Any) -> None:
    """Create the task broker's schema and queues if the broker is the site's database."""
    from pgmq.install import get_embedded_install_sql

    if using != "default" or not settings.CELERY_BROKER_URL.startswith("pgmq:"):
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_INSTALL_LOCK])
        cursor.execute("SELECT to_regclass('pgmq.meta') IS NOT NULL")
        if not cursor.fetchone()[0]:
            cursor.execute(get_embedded_install_sql())
        for queue in settings.CELERY_TASK_QUEUES:
            cursor.execute("SELECT pgmq.create(%s)", [queue.name])
