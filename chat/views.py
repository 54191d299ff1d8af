"""The chat in the browser: pages, and the fragments that htmx puts into them."""

from chat.debugging.debug_views import debug
from chat.pages.conversation_views import conversation_entry, conversations, delete_conversation, rename_conversation
from chat.pages.feedback_views import feedback
from chat.pages.page_views import conversation, home
from chat.pages.question_views import ask, stop
from chat.pages.sharing_views import share, shared, stop_sharing
from chat.pages.stream_views import stream

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
