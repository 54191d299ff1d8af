from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RetrievalConfig(AppConfig):
    name = "retrieval"
    verbose_name = _("Documents")

    def ready(self) -> None:
        from django.conf import settings

        from retrieval import checks, signals  # noqa: F401  (they register themselves)
        from retrieval.documents import sandbox
        from retrieval.viewer import pdf_pages

        sandbox.require_guards(settings.SANDBOX_REQUIRED)
        pdf_pages.configure(
            # One page in a web process: drawing takes a core, which answers need.
            at_once=1,
            memory_mib=512,
            seconds=10.0,
        )
