from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RetrievalConfig(AppConfig):
    name = "retrieval"
    verbose_name = _("Documents")

    def ready(self) -> None:
        from django.conf import settings

        from retrieval import checks, sandbox, signals  # noqa: F401  (they register themselves)
        from retrieval.viewer import pdf_pages

        sandbox.require_guards(settings.SANDBOX_REQUIRED)
        pdf_pages.configure(
            at_once=settings.DRAWINGS_AT_ONCE,
            memory_mib=settings.DRAWING_MEMORY_MIB,
            seconds=settings.DRAWING_SECONDS,
        )
