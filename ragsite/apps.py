from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class RagsiteConfig(AppConfig):
    name = "ragsite"

    def ready(self) -> None:
        # The queue's first users are documents: it follows their tables.
        post_migrate.connect(install_broker, sender=apps.get_app_config("retrieval"))


def install_broker(using: str, **_: Any) -> None:
    """The queue's schema belongs to the database as the tables do: whoever migrates has both."""
    from ragsite import broker

    if using == "default":
        broker.install()
