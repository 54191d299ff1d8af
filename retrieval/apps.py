from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "retrieval"
    verbose_name = "Documents"

    def ready(self) -> None:
        from retrieval import checks, signals  # noqa: F401  (they register themselves)
