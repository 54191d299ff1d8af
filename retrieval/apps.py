from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RetrievalConfig(AppConfig):
    name = "retrieval"
    verbose_name = _("Documents")

    def ready(self) -> None:
        from django.conf import settings

        from retrieval import checks, signals  # noqa: F401  (they register themselves)
        from retrieval.documents import sandbox
        from retrieval.viewer import pdf_pages  # noqa: F401  (its turns are shared by processes that are forked later)

        sandbox.set_guards_required(settings.SANDBOX_REQUIRED)
