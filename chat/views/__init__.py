"""The chat in the browser: pages, and the fragments that htmx puts into them."""

from chat.views.conversations import conversation_entry, conversations, delete_conversation, rename_conversation
from chat.views.debug import debug
from chat.views.feedback import feedback
from chat.views.pages import conversation, home
from chat.views.questions import ask, stop
from chat.views.sharing import share, shared, stop_sharing
from chat.views.stream import stream

__all__ = [
    "ask",
    "conversation",
    "conversation_entry",
    "conversations",
    "debug",
    "delete_conversation",
    "feedback",
    "home",
    "rename_conversation",
    "share",
    "shared",
    "stop",
    "stop_sharing",
    "stream",
]
