"""The chat in the browser: pages, and the fragments that htmx puts into them."""

from chat.views.conversations import delete_conversation
from chat.views.debug import debug
from chat.views.pages import conversation, home
from chat.views.questions import ask, stop
from chat.views.stream import stream

__all__ = ["ask", "conversation", "debug", "delete_conversation", "home", "stop", "stream"]
