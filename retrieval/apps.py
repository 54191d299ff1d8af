from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RetrievalConfig(AppConfig):
    name = "retrieval"
    verbose_name = _("Documents")

    def ready(self) -> None:
        from retrieval import checks, signals  # noqa: F401  (they register themselves)
