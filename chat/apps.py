from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    name = "chat"
    verbose_name = _("Chat")

    def ready(self) -> None:
        from chat.conversations import retention  # noqa: F401
        from chat.curation import approved_upkeep, followed_upkeep  # noqa: F401
        from chat.streaming import saving  # noqa: F401
